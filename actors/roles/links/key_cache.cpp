#include "actors/roles/links/key_cache.hpp"

#include "actors/transport/frames/traffic_class.hpp"
#include "serialization/wire.hpp"

#include <algorithm>
#include <bit>

namespace troupe::detail {

namespace {

std::size_t bytes_of(std::uint64_t count) { return count * sizeof(std::uint64_t); }

/// Hashes with four independent sums, as a single sum would wait for each of its multiplications.
std::uint64_t hash_of(const row_keys& list) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15; // 2^64 / golden ratio.
  std::uint64_t sums[4] = {list.table.value, list.width, list.count, odd};
  const auto keys = list.span();
  std::size_t i = 0;
  for (; i + 4 <= keys.size(); i += 4)
    for (std::size_t j = 0; j < 4; ++j)
      sums[j] = std::rotl(sums[j] ^ keys[i + j], 29) * odd;
  for (; i < keys.size(); ++i)
    sums[i % 4] = std::rotl(sums[i % 4] ^ keys[i], 29) * odd;
  std::uint64_t hash = 0;
  for (const std::uint64_t sum : sums)
    hash = row_hash(hash ^ sum);
  return hash;
}

std::vector<row_keys*> lists_of(request& what) {
  std::vector<row_keys*> lists;
  if (what.push)
    for (row_piece& x : what.push->rows)
      lists.push_back(&x.where);
  if (what.pull)
    for (row_keys& x : what.pull->rows)
      lists.push_back(&x);
  return lists;
}

failure malformed(const std::string& text) { return {errc::malformed, text}; }

} // namespace

// -- the sender's half --

void key_cache::shorten(request_message& what) {
  if (traffic_class_of(what.what) != traffic_class::bulk)
    return;
  ++request_;
  for (row_keys* list : lists_of(what.what))
    what.keys.push_back(use(*list, what.forgotten));
  if (std::ranges::all_of(what.keys, [](const key_use& x) { return x == key_use{}; }))
    what.keys.clear();
}

key_use key_cache::use(row_keys& list, std::vector<std::uint32_t>& forgotten) {
  const std::size_t size_bytes = bytes_of(list.count);
  if (list.count < kept_keys_min || size_bytes > limits_.bytes_max)
    return {};
  const std::uint64_t hash = hash_of(list);
  if (const auto known = by_hash_.find(hash); known != by_hash_.end()) {
    entry& same = *known->second;
    if (same.table == list.table && same.width == list.width
        && std::ranges::equal(same.keys, list.span())) {
      entries_.splice(entries_.begin(), entries_, known->second);
      same.last_request = request_;
      list.keys = nullptr;
      return {key_use::how::named, same.slot};
    }
    if (!forget(known->second, forgotten)) // Two lists with the same hash.
      return {};
  }
  if (first_unordered(list.span()) < list.count || !make_room(size_bytes, forgotten))
    return {};
  std::uint32_t slot = used_max_;
  if (free_.empty()) {
    ++used_max_;
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  const auto keys = list.span();
  entries_.push_front({hash, slot, list.table, list.width, {keys.begin(), keys.end()}, request_});
  by_hash_.emplace(hash, entries_.begin());
  bytes_ += size_bytes;
  return {key_use::how::kept, slot};
}

bool key_cache::make_room(std::size_t size_bytes, std::vector<std::uint32_t>& forgotten) {
  while (entries_.size() >= limits_.lists_max || bytes_ + size_bytes > limits_.bytes_max)
    if (entries_.empty() || !forget(std::prev(entries_.end()), forgotten))
      return false;
  return true;
}

/// Frees a list's slot. Returns false if the current request uses the slot and so may not free it.
bool key_cache::forget(entries::iterator which, std::vector<std::uint32_t>& forgotten) {
  if (which->last_request == request_)
    return false;
  forgotten.push_back(which->slot);
  free_.push_back(which->slot);
  bytes_ -= bytes_of(which->keys.size());
  by_hash_.erase(which->hash);
  entries_.erase(which);
  return true;
}

// -- the receiver's half --

result<void> key_slots::complete(request_message& what) {
  const bool uses_slots = !what.keys.empty() || !what.forgotten.empty();
  if (uses_slots && traffic_class_of(what.what) != traffic_class::bulk)
    return malformed("keys in slots, in a request that may overtake others");
  for (const std::uint32_t slot : what.forgotten)
    if (auto done = forget(slot); !done)
      return done;
  const auto lists = lists_of(what.what);
  std::size_t named_bytes = 0;
  for (std::size_t i = 0; i < what.keys.size(); ++i) {
    const auto [way, slot] = what.keys[i];
    auto done = way == key_use::how::kept    ? keep(slot, *lists[i])
                : way == key_use::how::named ? look_up(slot, *lists[i])
                                             : result<void>{};
    if (!done)
      return done;
    named_bytes += way == key_use::how::named ? bytes_of(lists[i]->count) : 0;
  }
  if (named_bytes > wire::body_bytes_max) // Keys in the message were checked before.
    return malformed("a request with more keys than one message can bring");
  what.keys.clear();
  what.forgotten.clear();
  return {};
}

result<void> key_slots::forget(std::uint32_t slot) {
  const auto found = slots_.find(slot);
  if (found == slots_.end())
    return malformed("no keys to forget in slot " + std::to_string(slot));
  bytes_ -= bytes_of(found->second.count);
  slots_.erase(found);
  return {};
}

result<void> key_slots::keep(std::uint32_t slot, const row_keys& list) {
  if (slot >= limits_.lists_max)
    return malformed("no slot for keys: " + std::to_string(slot) + ", there are "
                     + std::to_string(limits_.lists_max));
  if (slots_.contains(slot))
    return malformed("slot " + std::to_string(slot) + " has keys already");
  if (list.count == 0 || first_unordered(list.span()) < list.count)
    return malformed("keys to be kept must ascend");
  if (bytes_of(list.count) > limits_.bytes_max - bytes_)
    return malformed("more keys than may be kept: " + std::to_string(bytes_) + " and "
                     + std::to_string(bytes_of(list.count)) + " bytes");
  bytes_ += bytes_of(list.count);
  slots_.emplace(slot, list);
  return {};
}

result<void> key_slots::look_up(std::uint32_t slot, row_keys& list) const {
  const auto found = slots_.find(slot);
  if (found == slots_.end())
    return malformed("no keys in slot " + std::to_string(slot));
  const row_keys& kept = found->second;
  if (kept.table != list.table || kept.width != list.width || kept.count != list.count)
    return malformed("keys of other rows in slot " + std::to_string(slot));
  list.keys = kept.keys;
  return {};
}

} // namespace troupe::detail
