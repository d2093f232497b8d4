// Reads and writes parameters as files of other programs: .npy (one tensor), .npz (zip of .npy,
// stored) and .safetensors. Values are f32, little-endian, row-major. Formats: numpy.lib.format
// 1.0; safetensors 0.4. Other floats and a compressed .npz can be read too.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::storage {

struct tensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::vector<float> values;          ///< Product of `shape` elements.
  std::string converted_from = {};    ///< "float64", for example, if the file's numbers were not
                                      ///< float32.
  std::optional<failure> unread = {}; ///< Why the values cannot be read; nullopt: they can be.

  /// Compares content, not the number format of the file.
  bool operator==(const tensor& other) const {
    return name == other.name && shape == other.shape && values == other.values;
  }
};

/// Checks that the extension is known. Errors: invalid_argument.
result<void> check_extension(const std::filesystem::path& file);

/// Writes the format of the extension by write_outputs(), so that a file of this name is always
/// whole. Equal tensors give equal bytes. Errors: invalid_argument (extension;
/// .npy with not exactly one tensor; a name that is repeated, not UTF-8 or of 64 KiB or more in
/// a .npz; shape and number of values differ), io_failed.
result<void> write_tensors(const std::filesystem::path& file, const std::vector<tensor>& tensors);

/// Says whether the values of the tensor of this name and shape are to be read.
using tensor_filter =
  std::function<bool(const std::string& name, std::span<const std::uint64_t> shape)>;

/// Returns tensors in the file's order. A tensor for which `wants` is false has no values; those of
/// a .npz are never unpacked into the memory. A .npy's tensor has the file's stem as its name.
/// Values that are f64, f16, bf16 or big-endian become f32. With `wants`, a member of a .npz that
/// is no .npy is left out. A tensor that cannot be read, or that a .npz has twice, is then no
/// error: it has the reason as `unread`, and may lack its shape. Errors: invalid_argument
/// (extension; a value too large for f32; dtype other than a float, Fortran order, encryption),
/// malformed (names the content if it is of another format), damaged (checksum of a .npz member),
/// io_failed.
result<std::vector<tensor>> read_tensors(const std::filesystem::path& file,
                                         const tensor_filter& wants = {});

/// Reads `bytes` as the content of `file`, whose name gives the format. Errors: those of
/// read_tensors().
result<std::vector<tensor>> decode_tensors(const std::filesystem::path& file,
                                           std::string_view bytes, const tensor_filter& wants = {});

/// Returns "2x3", "a scalar".
std::string shape_text(std::span<const std::uint64_t> shape);
/// Names element `index` of a tensor of that shape: "[1, 0]", "[]" for a scalar.
std::string position_text(std::span<const std::uint64_t> shape, std::uint64_t index);

} // namespace troupe::storage
