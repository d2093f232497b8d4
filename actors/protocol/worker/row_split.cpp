#include "actors/protocol/worker/row_split.hpp"

#include <algorithm>
#include <cassert>

namespace troupe {

row_split::row_split(const std::vector<shard_id>& shard_of) {
  for (const shard_id owner : shard_of) {
    const auto known = std::find(chains_.begin(), chains_.end(), owner);
    of_partition_.push_back(static_cast<std::uint32_t>(known - chains_.begin()));
    if (known == chains_.end())
      chains_.push_back(owner);
  }
}

std::vector<std::pair<shard_id, row_piece>> row_split::split(const row_piece& whole) const {
  std::vector<std::pair<shard_id, row_piece>> parts;
  const auto& [where, values] = whole;
  if (where.count == 0)
    return parts;
  if (chains_.size() == 1)
    return {{chains_.front(), whole}};
  const std::uint64_t mask = of_partition_.size() - 1;
  std::vector<std::uint64_t> counts(chains_.size());
  for (const std::uint64_t key : where.span())
    ++counts[of_partition_[row_hash(key) & mask]];

  struct writer {
    std::uint64_t* keys = nullptr;
    float* values = nullptr;
  };
  std::vector<writer> writers(chains_.size());
  for (std::size_t i = 0; i < chains_.size(); ++i) {
    if (counts[i] == 0)
      continue;
    const auto keys = pool_->bytes(counts[i] * sizeof(std::uint64_t));
    writers[i].keys = reinterpret_cast<std::uint64_t*>(keys.get());
    row_piece part{{where.table, where.width, counts[i], {keys, writers[i].keys}}, nullptr};
    if (values) {
      const auto floats = pool_->floats(part.where.floats());
      writers[i].values = floats.get();
      part.values = floats;
    }
    parts.emplace_back(chains_[i], std::move(part));
  }
  const float* from = values.get();
  for (const std::uint64_t key : where.span()) {
    writer& to = writers[of_partition_[row_hash(key) & mask]];
    *to.keys++ = key;
    if (values) {
      to.values = std::copy_n(from, where.width, to.values);
      from += where.width;
    }
  }
  return parts;
}

void row_split::join(std::span<const row_keys> asked, std::span<const row_piece> answer,
                     std::span<const row_keys> all_asked, std::span<row_piece> all_answers) const {
  assert(asked.size() == answer.size() && all_asked.size() == all_answers.size());
  std::size_t whole = 0;
  for (std::size_t i = 0; i < asked.size(); ++i, ++whole) {
    // A shard that has no row of a list has no part of it.
    const auto is_part = [&](const row_keys& of) {
      return of.table == asked[i].table
             && std::binary_search(of.span().begin(), of.span().end(), *asked[i].keys);
    };
    while (!is_part(all_asked[whole]))
      ++whole;
    put(asked[i], answer[i].values, all_asked[whole], all_answers[whole]);
  }
}

void row_split::put(const row_keys& part, const float_ptr& values, const row_keys& whole,
                    row_piece& into) const {
  if (part.keys == whole.keys) {
    into.values = values;
    return;
  }
  if (!into.values)
    into.values = pool_->floats(whole.floats());
  // That memory is not shared yet: only this object has seen it.
  auto* const to = const_cast<float*>(into.values.get());
  const auto keys = whole.span();
  std::size_t at = 0;
  const float* from = values.get();
  for (const std::uint64_t key : part.span()) {
    while (keys[at] != key)
      ++at;
    std::copy_n(from, whole.width, to + at * whole.width);
    from += whole.width;
  }
}

} // namespace troupe
