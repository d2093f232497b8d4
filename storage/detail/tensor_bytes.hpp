// What the tensor file formats have in common: shapes, names, and values as bytes.
#pragma once

#include "storage/tensor_file.hpp"

#include <optional>
#include <span>
#include <string_view>

namespace troupe::storage::detail {

/// Product of a shape; nothing where it exceeds 64 bits. 1 for the empty shape.
std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape);

/// The values as they are stored. Borrowed from the tensor.
std::string_view bytes_of_values(const tensor& from);

/// Copies the values. Errors: malformed where bytes and shape do not agree.
result<tensor> tensor_of(std::string name, std::vector<std::uint64_t> shape,
                         std::string_view bytes);

/// Errors: invalid_argument, for what no format can hold: see write_tensors.
result<void> check_tensors(std::span<const tensor> tensors);

} // namespace troupe::storage::detail
