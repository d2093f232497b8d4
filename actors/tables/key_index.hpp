// Numbers 64-bit keys in the order of their insertion. An open-addressing hash table whose buckets
// are cache lines of five keys: a look-up compares the five without a branch, and reads a second
// line only if the first is full.
#pragma once

#include "actors/tables/huge_page_pool.hpp"
#include "serialization/rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe {

/// Callers hash (row_hash) themselves: they prefetch for many keys before they look up the first.
/// Capacity: 2^32 - 2 keys; memory grows with the largest size() so far, by doubling.
/// Invariants:
/// (1) at most three quarters of the slots are in use: insert() grows before that.
/// (2) a key is in the first bucket, from its home on, that had a free slot at its insertion, and
///     the slots of a bucket fill in order. Only clear() removes keys, so a search ends at the
///     first bucket whose last slot is free.
class key_index {
public:
  static constexpr std::uint32_t absent = 0xffffffff;

  /// `load_max`: share of the slots in use before it grows, at most 0.75. Indices that are filled
  /// alike grow at different times if their load_max differs.
  explicit key_index(std::shared_ptr<huge_page_pool> pool, double load_max = 0.75);

  void prefetch(std::uint64_t hash) const { __builtin_prefetch(&buckets_[hash >> shift_]); }

  /// Returns the key's number, or `absent`.
  std::uint32_t find(std::uint64_t key, std::uint64_t hash) const {
    for (std::size_t i = hash >> shift_;; i = (i + 1) & bucket_mask_) {
      const bucket& at = buckets_[i];
      std::uint32_t found = absent; // The largest number: free slots, whose key is 0, never win.
#pragma GCC unroll 5
      for (std::size_t k = 0; k < bucket_slots; ++k)
        found = std::min(found, at.numbers[k] | -static_cast<std::uint32_t>(at.keys[k] != key));
      if (found != absent || at.numbers[bucket_slots - 1] == absent)
        return found;
    }
  }

  /// Returns the key's number; a new key gets the number size().
  std::uint32_t find_or_add(std::uint64_t key, std::uint64_t hash) {
    const std::uint32_t found = find(key, hash);
    return found != absent ? found : insert(key, hash);
  }

  std::uint32_t size() const { return size_; }
  void clear();

private:
  static constexpr std::size_t bucket_slots = 5;
  struct alignas(64) bucket {
    std::uint64_t keys[bucket_slots] = {};
    std::uint32_t numbers[bucket_slots] = {absent, absent, absent, absent, absent};
  };

  std::uint32_t insert(std::uint64_t key, std::uint64_t hash);
  void put(std::uint64_t key, std::uint32_t number, std::uint64_t hash);
  void grow();
  void make_buckets(std::size_t count);

  bucket* buckets_ = nullptr;
  std::size_t bucket_mask_ = 0; ///< Number of buckets - 1; they are a power of two.
  unsigned shift_ = 0;          ///< Leaves the high bits of a hash that number a bucket.
  std::uint32_t size_ = 0;
  std::uint32_t size_max_ = 0; ///< Size at which the present buckets are full.
  std::shared_ptr<huge_page_pool> pool_;
  std::shared_ptr<std::byte> memory_; ///< Holds the buckets.
  double load_max_;
};

} // namespace troupe
