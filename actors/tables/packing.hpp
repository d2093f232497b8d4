// Converts the floats of a block to the bytes of an encoding (serialization/encoding.hpp) and back.
#pragma once

#include "base/error.hpp"
#include "serialization/encoding.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe {

/// Largest number of elements in a block that is packed.
constexpr std::uint64_t packed_elements_max = std::uint64_t{1} << 20;

/// Returns the number of bytes that pack() writes for `count` elements; a multiple of 8, below
/// 2^32.
/// Requires: how.how is not f32; count <= packed_elements_max.
std::size_t packed_bytes(const compression& how, std::uint64_t count);

/// Packs x or, with how.keeps_residual(), x + residual; the part that is not packed stays in the
/// residual. A function of its arguments. The seed is for random draws (int8, randomk); int8
/// without a seed rounds to the nearest.
/// Shapes: residual f32[x.size()], or empty where none is kept; `to` packed_bytes(how, x.size()).
/// Requires: `to` is aligned to 8.
void pack(const compression& how, std::span<const float> x, std::span<float> residual,
          const std::uint64_t* seed, std::span<std::byte> to);

/// Writes every element of y, or returns the error in the bytes; y is then unspecified. A sender
/// that changes the bytes meanwhile can change only values.
/// Requires: `from` is aligned to 8. Errors: malformed.
result<void> unpack(encoding how, std::span<const std::byte> from, std::span<float> y);

} // namespace troupe
