// What the tensor file formats have in common: shapes, names, and values as bytes.
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

/// Product of a shape; nothing where it exceeds 64 bits. 1 for the empty shape.
std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape);

/// The values as they are stored. Borrowed from the tensor.
std::string_view bytes_of_values(const tensor& from);

/// How a file stores numbers. In memory they are f32.
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

/// Copies the values, converted to f32.
/// Errors: malformed where bytes and shape do not agree; invalid_argument where a value is too
/// large for f32.
result<tensor> tensor_of(std::string name, std::vector<std::uint64_t> shape, std::string_view bytes,
                         number_format format = {});

/// Errors: invalid_argument, for what no format can hold: see write_tensors.
result<void> check_tensors(std::span<const tensor> tensors);

} // namespace troupe::storage::detail
