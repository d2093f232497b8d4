// Compares the bytes of two servers' images.
#pragma once

#include "storage/cut.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace troupe::storage {

inline bool same_floats(const float_ptr& a, const float_ptr& b, std::uint64_t count) {
  return count == 0 || std::memcmp(a.get(), b.get(), count * sizeof(float)) == 0;
}

inline bool same(const block_image& a, const block_image& b) {
  return a.table == b.table && a.block == b.block && a.version == b.version && a.steps == b.steps
         && a.count == b.count && a.state_count == b.state_count
         && same_floats(a.values, b.values, a.count)
         && same_floats(a.state, b.state, a.state_count);
}

inline bool same(const slab_image& a, const slab_image& b) {
  const auto same_numbers = [&](const key_ptr& x, const key_ptr& y) {
    return (x == nullptr) == (y == nullptr)
           && (!x || std::memcmp(x.get(), y.get(), a.count * sizeof(std::uint64_t)) == 0);
  };
  return a.table == b.table && a.slab == b.slab && a.version == b.version && a.count == b.count
         && a.row_floats == b.row_floats && same_numbers(a.keys, b.keys)
         && same_numbers(a.steps, b.steps) && same_floats(a.rows, b.rows, a.count * a.row_floats);
}

/// Returns true if all that a checkpoint holds of both is equal, byte for byte.
inline bool same(const std::vector<partition_image>& a, const std::vector<partition_image>& b) {
  if (a.size() != b.size())
    return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].partition != b[i].partition || a[i].version != b[i].version
        || a[i].applied != b[i].applied || a[i].blocks.size() != b[i].blocks.size()
        || a[i].slabs.size() != b[i].slabs.size())
      return false;
    for (std::size_t j = 0; j < a[i].slabs.size(); ++j)
      if (!same(a[i].slabs[j], b[i].slabs[j]))
        return false;
    for (std::size_t j = 0; j < a[i].blocks.size(); ++j)
      if (!same(a[i].blocks[j], b[i].blocks[j]))
        return false;
  }
  return true;
}

} // namespace troupe::storage
