// Defines how floats of dense tables travel in fewer bytes: the encodings, and a table's setting.
// actors/tables/packing.hpp makes the bytes and reads them.
//
// The bytes of n floats, little-endian. Each encoding is filled with zeros to a multiple of 8:
//   fp16, bf16  u16[n]
//   int8        f32 scales[blocks of 256], i8[n]
//   onebit      f32 means[2 * blocks of 1024]: of the values below zero, of the others;
//               bits[n], the low one first: 1 where not below zero
//   topk        u32 k, f32 values[k], u32 counts[stretches of 65536], u16 places[k]: within their
//               stretch, ascending
//   randomk     u64 seed, u32 k, f32 values[k]; kernels/sparsify.hpp says which elements these are
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>

namespace troupe {

/// The numbers are wire format, and bit positions in an encoding_set.
enum class encoding : std::uint8_t {
  f32 = 0, ///< Unchanged, as in memory.
  fp16 = 1,
  bf16 = 2,
  int8 = 3, ///< The last one that pulls may use. Later ones leave out values, which a pull cannot
            ///< send later.
  onebit = 4,
  topk = 5,
  randomk = 6,
};

const char* to_string(encoding x);

/// One bit for each encoding but f32, which every process reads.
using encoding_set = std::uint32_t;
constexpr encoding_set only(encoding x) {
  return x == encoding::f32 ? 0 : encoding_set{1} << static_cast<std::uint8_t>(x);
}
/// The encodings that this program reads.
constexpr encoding_set all_encodings = only(encoding::fp16) | only(encoding::bf16)
                                       | only(encoding::int8) | only(encoding::onebit)
                                       | only(encoding::topk) | only(encoding::randomk);
/// Returns, for example, "fp16, topk".
std::string names_of(encoding_set what);

/// How a table's gradients are encoded before they are sent.
struct compression {
  encoding how = encoding::f32;
  double fraction = 0; ///< topk, randomk: share of a push's elements that is sent; in (0, 1].

  /// Returns whether the unsent rest is kept and added to the next gradient. The other encodings
  /// lose their rest, which is smaller; their bytes are a function of the gradient and its batch.
  bool keeps_residual() const {
    return how == encoding::onebit || how == encoding::topk || how == encoding::randomk;
  }
  bool operator==(const compression&) const = default;
};

/// Returns "f32", "fp16", "topk:0.01".
std::string to_string(const compression& x);
/// Reads a gradient's encoding. Errors: invalid_argument.
result<compression> parse_compression(const std::string& text);
/// Reads the encoding of pulled values: fp16, bf16 or int8. No rest can be kept of a pull. Errors:
/// invalid_argument.
result<encoding> parse_pull_encoding(const std::string& text);

} // namespace troupe
