// A map whose keys only grow, such as the open requests of an actor by their numbers.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

/// A sorted vector. Adding takes constant time on average, finding takes logarithmic time, and no
/// entry is allocated by itself. References to values are valid until the next add().
template <class T>
class growing_map {
public:
  using key_type = std::uint64_t;

  /// Requires: `key` is larger than all keys that were added before.
  T& add(key_type key, T value) {
    assert(entries_.empty() || entries_.back().key < key);
    if (entries_.size() == entries_.capacity() && size_ < entries_.size() / 2)
      drop_removed();
    entries_.push_back({key, std::move(value)});
    ++size_;
    return *entries_.back().value;
  }

  /// Returns null if there is no such key.
  T* find(key_type key) {
    entry* const found = locate(key);
    return found == nullptr ? nullptr : &*found->value;
  }
  bool contains(key_type key) { return find(key) != nullptr; }
  /// Requires: contains(key).
  T& at(key_type key) {
    T* const found = find(key);
    assert(found != nullptr);
    return *found;
  }

  /// Removes the key. Returns its value, or nullopt if there is no such key.
  std::optional<T> extract(key_type key) {
    entry* const found = locate(key);
    if (found == nullptr)
      return std::nullopt;
    auto value = std::exchange(found->value, std::nullopt);
    --size_;
    while (first_ < entries_.size() && !entries_[first_].value)
      ++first_;
    if (size_ == 0)
      clear();
    return value;
  }

  /// Calls `which(key, value)` for each entry, in the order of keys, and removes those for which it
  /// returns true. `which` must not change the map.
  template <class Predicate>
  void erase_if(Predicate which) {
    for (entry& each : entries_)
      if (each.value && which(each.key, *each.value)) {
        each.value.reset();
        --size_;
      }
    drop_removed();
  }

  void clear() {
    entries_.clear();
    first_ = 0;
    size_ = 0;
  }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return entries_.capacity(); }

private:
  struct entry {
    key_type key = 0;
    std::optional<T> value; ///< Nullopt: removed.
  };

  entry* locate(key_type key) {
    const auto from = entries_.begin() + static_cast<std::ptrdiff_t>(first_);
    const auto found = std::ranges::lower_bound(from, entries_.end(), key, {}, &entry::key);
    return found != entries_.end() && found->key == key && found->value ? &*found : nullptr;
  }

  void drop_removed() {
    std::erase_if(entries_, [](const entry& x) { return !x.value; });
    first_ = 0;
  }

  std::vector<entry> entries_; ///< Keys ascend.
  std::size_t first_ = 0;      ///< Entries before this one are removed.
  std::size_t size_ = 0;
};

} // namespace troupe
