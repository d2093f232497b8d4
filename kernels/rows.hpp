// Rows of a table, picked and added to by their numbers.
//   gather       rows[i] = table[index[i]]
//   scatter_add  table[index[i]] += rows[i], for i = 0, 1, ...
//
// Shapes:       table f32[any * width], rows f32[n * width], index u32[n]; width > 0.
// Requires:     every row that `index` names is in the table. One may be named any number of times.
// Aliasing:     none: table and rows must not overlap.
// Max error:    gather none; scatter_add 0.5 ulp for each addition.
// Determinism:  bit-identical on every CPU target, but for which NaN a NaN is: a row that is named
//               again is added to again, in the order of i.
// Cost:         one pass over rows and index, n rows of the table in their order; reads
//               4n (width + 1) bytes, scatter_add 4n width more, writes 4n width; no allocation.
#pragma once

#include "kernels/stream.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::kernels {

void gather(std::span<float> rows, std::span<const float> table,
            std::span<const std::uint32_t> index, std::size_t width);
void scatter_add(std::span<float> table, std::span<const float> rows,
                 std::span<const std::uint32_t> index, std::size_t width);

// -- the same on a stream; spans are memory of its device; the same bytes -------------------------
// Enqueued, done when the stream has come to it.

void gather(stream at, std::span<float> rows, std::span<const float> table,
            std::span<const std::uint32_t> index, std::size_t width);
/// Shapes: order u64[n], n < 2^32; it may be overwritten by any work that follows on the stream.
/// Cost: sorts `order`, with about log2(n)^2 / 2 launches that read and write 8n bytes each; then
/// additions to one row wait for each other.
void scatter_add(stream at, std::span<float> table, std::span<const float> rows,
                 std::span<const std::uint32_t> index, std::size_t width,
                 std::span<std::uint64_t> order);

} // namespace troupe::kernels
