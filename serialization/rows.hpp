// Rows of sparse tables: 64-bit keys, and `width` floats under each.
#pragma once

#include "base/buffer.hpp"
#include "serialization/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace troupe {

/// Read-only keys that stay alive while this handle does; may point into a larger buffer.
using key_ptr = std::shared_ptr<const std::uint64_t>;

/// Keys of a sparse table, each larger than the one before. Shared, and written to by nobody.
struct row_keys {
  table_id table;
  std::uint32_t width = 0; ///< Of the table's rows.
  std::uint64_t count = 0;
  key_ptr keys;

  std::uint64_t floats() const { return count * width; }

  std::span<const std::uint64_t> span() const { return {keys.get(), count}; }
};

/// Rows and their values, f32[where.floats()], in the order of the keys.
struct row_piece {
  row_keys where;
  float_ptr values;
};

/// Bits that look random and tell any two keys apart: partitions take the low ones, hash tables the
/// high ones. Part of the storage format. The finaliser of splitmix64 (Steele, Lea, Flood 2014).
constexpr std::uint64_t row_hash(std::uint64_t key) {
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
  key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
  return key ^ (key >> 31);
}

/// Position of the first key that is not larger than the one before it; keys.size(): none.
std::size_t first_unordered(std::span<const std::uint64_t> keys);

} // namespace troupe
