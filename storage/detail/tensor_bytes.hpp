// Handles shapes, names and values as bytes for all tensor file formats.
#pragma once

#include "storage/tensor_file.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::storage::detail {

/// Returns the product of a shape; nullopt if it exceeds 64 bits. 1 for the empty shape.
std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape);

/// Returns the values as stored, borrowed from the tensor.
std::string_view bytes_of_values(const tensor& from);

/// The number format of a file. In memory all numbers are f32.
struct number_format {
  enum class kind : std::uint8_t { f32, f64, f16, bf16 };

  kind type = kind::f32;
  bool big_endian = false;

  std::size_t bytes() const { return type == kind::f64 ? 8 : type == kind::f32 ? 4 : 2; }
  const char* name() const {
    return type == kind::f64   ? "float64"
           : type == kind::f16 ? "float16"
           : type == kind::f32 ? "float32"
                               : "bfloat16";
  }
};

/// Copies the values, converted to f32. Errors: malformed if bytes and shape do not agree;
/// invalid_argument if a value is too large for f32.
result<tensor> tensor_of(std::string name, std::vector<std::uint64_t> shape, std::string_view bytes,
                         number_format format = {});

/// Errors: invalid_argument, if no format can hold the tensors: see write_tensors.
result<void> check_tensors(std::span<const tensor> tensors);

} // namespace troupe::storage::detail
