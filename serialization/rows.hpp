// Rows of sparse tables: 64-bit keys, and `width` floats under each.
#pragma once

#include "base/buffer.hpp"
#include "base/splitmix64.hpp"
#include "serialization/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace troupe {

/// Read-only keys that stay alive as long as this handle. It may point into a larger buffer.
using key_ptr = std::shared_ptr<const std::uint64_t>;

/// Keys of a sparse table, strictly ascending. They are shared and never written to.
struct row_keys {
  table_id table;
  std::uint32_t width = 0; ///< Width of the table's rows.
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

/// Returns a hash that differs for any two keys. Partitions use its low bits, hash tables its high
/// bits. Part of the storage format.
constexpr std::uint64_t row_hash(std::uint64_t key) { return splitmix64_of(key); }

/// Returns the position of the first key that is not above its predecessor, else keys.size().
std::size_t first_unordered(std::span<const std::uint64_t> keys);

} // namespace troupe
