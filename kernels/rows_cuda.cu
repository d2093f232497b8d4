#include "kernels/launch.inl.hpp"
#include "kernels/rows.hpp"

#include <cassert>

namespace troupe::kernels {

namespace {

struct gather_body {
  float* rows;
  const float* table;
  const std::uint32_t* index;
  std::size_t width;
  TROUPE_HD void operator()(std::size_t i) const {
    rows[i] = table[index[i / width] * width + i % width];
  }
};

/// A row of the table, then who adds to it: no two are equal, so however they are sorted, they end
/// in the same order.
struct order_body {
  std::uint64_t* order;
  const std::uint32_t* index;
  TROUPE_HD void operator()(std::size_t i) const { order[i] = std::uint64_t{index[i]} << 32 | i; }
};

/// One step of a bitonic sort, for each pair of elements. The first step of a merge compares
/// elements from both ends of a stretch, so that all pairs ascend; behind the last element one
/// can then imagine infinities, which never move.
struct exchange_body {
  std::uint64_t* order;
  std::size_t count;
  std::size_t stride; ///< A power of 2: half a stretch.
  bool from_both_ends;
  TROUPE_HD void operator()(std::size_t pair) const {
    const std::size_t within = pair % stride, a = (pair - within) * 2 + within;
    const std::size_t b = from_both_ends ? a + 2 * (stride - within) - 1 : a + stride;
    if (b >= count || order[a] <= order[b])
      return;
    const std::uint64_t smaller = order[b];
    order[b] = order[a];
    order[a] = smaller;
  }
};

/// The first of those who add to a row does it for all of them, one column at a time.
struct add_sorted_body {
  float* table;
  const float* rows;
  const std::uint64_t* order;
  std::size_t count, width;
  TROUPE_HD void operator()(std::size_t i) const {
    const std::size_t column = i % width;
    std::size_t at = i / width;
    const std::uint64_t row = order[at] >> 32;
    if (at > 0 && order[at - 1] >> 32 == row)
      return;
    float& sum = table[row * width + column];
    float value = sum;
    for (; at < count && order[at] >> 32 == row; ++at)
      value += rows[(order[at] & 0xffffffff) * width + column];
    sum = value;
  }
};

} // namespace

void gather(stream at, std::span<float> rows, std::span<const float> table,
            std::span<const std::uint32_t> index, std::size_t width) {
  assert(width > 0 && rows.size() == index.size() * width);
  launch_elements(at, rows.size(), gather_body{rows.data(), table.data(), index.data(), width});
}

void scatter_add(stream at, std::span<float> table, std::span<const float> rows,
                 std::span<const std::uint32_t> index, std::size_t width,
                 std::span<std::uint64_t> order) {
  const std::size_t count = index.size();
  assert(width > 0 && rows.size() == count * width && order.size() == count);
  launch_elements(at, count, order_body{order.data(), index.data()});
  for (std::size_t half = 1; half < count; half *= 2)
    for (std::size_t stride = half; stride > 0; stride /= 2) {
      // A pair has its lower element in the first half of a stretch; the last may have but that.
      const std::size_t stretches = (count + 2 * stride - 1) / (2 * stride);
      launch_elements(at, stretches * stride,
                      exchange_body{order.data(), count, stride, stride == half});
    }
  launch_elements(at, rows.size(),
                  add_sorted_body{table.data(), rows.data(), order.data(), count, width});
}

} // namespace troupe::kernels
