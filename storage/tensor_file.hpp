// Parameters as files that other programs read: .npy (one tensor), .npz (zip of .npy, stored) and
// .safetensors. f32, little-endian, row-major. Formats: numpy.lib.format 1.0; safetensors 0.4.
#pragma once

#include "serialization/error.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::storage {

struct tensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::vector<float> values; ///< Product of `shape` elements.

  bool operator==(const tensor&) const = default;
};

/// Errors: invalid_argument where the extension is none of those known.
result<void> check_extension(const std::filesystem::path& file);

/// The format follows the extension. Written to a temporary name, synced, renamed: a file of this
/// name is always whole. Equal tensors give equal bytes.
/// Errors: invalid_argument (extension; .npy with not exactly one tensor; .npz of 4 GiB or more; a
/// name that is twice there or not UTF-8; shape and number of values differ), io_failed.
result<void> write_tensors(const std::filesystem::path& file, const std::vector<tensor>& tensors);

/// Tensors in the file's order. A .npy's tensor has the file's stem as its name.
/// Errors: invalid_argument (extension; dtype other than f32, Fortran order, compression, zip64),
/// malformed, damaged (checksum of a .npz member), io_failed.
result<std::vector<tensor>> read_tensors(const std::filesystem::path& file);

} // namespace troupe::storage
