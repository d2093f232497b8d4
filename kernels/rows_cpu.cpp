#include "kernels/rows.hpp"

#include <algorithm>
#include <cassert>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows_cpu.cpp"
#include "hwy/foreach_target.h"

#include "kernels/simd.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::HWY_NAMESPACE {
namespace {

/// Calls body(row, i) for each row of the table that `index` names. Rows come from all over memory,
/// so the one `ahead` is asked for: far enough to hide a miss, near enough to stay in the cache.
template <class Table, class Body>
HWY_INLINE void for_each_row(Table* table, const std::uint32_t* index, std::size_t count,
                             std::size_t width, const Body& body) {
  constexpr std::size_t ahead = 16, line = 64 / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + ahead < count) {
      const float* next = table + index[i + ahead] * width;
      for (std::size_t k = 0; k < std::min(width, 4 * line); k += line)
        hwy::Prefetch(next + k);
    }
    body(table + index[i] * width, i);
  }
}

void gather_all(float* rows, const float* table, const std::uint32_t* index, std::size_t count,
                std::size_t width) {
  for_each_row(table, index, count, width, [=](const float* from, std::size_t row) HWY_ATTR {
    float* const to = rows + row * width;
    for_each_vector(width, [=](auto d, std::size_t i)
                             HWY_ATTR { hn::StoreU(hn::LoadU(d, from + i), d, to + i); });
  });
}

void scatter_add_all(float* table, const float* rows, const std::uint32_t* index, std::size_t count,
                     std::size_t width) {
  for_each_row(table, index, count, width, [=](float* to, std::size_t row) HWY_ATTR {
    const float* const from = rows + row * width;
    for_each_vector(width, [=](auto d, std::size_t i) HWY_ATTR {
      hn::StoreU(hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i);
    });
  });
}

} // namespace
} // namespace troupe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::kernels {

namespace {

HWY_EXPORT(gather_all);
HWY_EXPORT(scatter_add_all);

[[maybe_unused]] bool fits(std::span<const float> rows, std::span<const float> table,
                           std::span<const std::uint32_t> index, std::size_t width) {
  return width > 0 && rows.size() == index.size() * width
         && std::ranges::all_of(index, [&](auto row) { return row < table.size() / width; });
}

} // namespace

void gather(std::span<float> rows, std::span<const float> table,
            std::span<const std::uint32_t> index, std::size_t width) {
  assert(fits(rows, table, index, width));
  HWY_DYNAMIC_DISPATCH(gather_all)(rows.data(), table.data(), index.data(), index.size(), width);
}

void scatter_add(std::span<float> table, std::span<const float> rows,
                 std::span<const std::uint32_t> index, std::size_t width) {
  assert(fits(rows, table, index, width));
  HWY_DYNAMIC_DISPATCH(scatter_add_all)
  (table.data(), rows.data(), index.data(), index.size(), width);
}

} // namespace troupe::kernels

#endif
