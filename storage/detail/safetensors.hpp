// Reads and writes the .safetensors format: u64 length of the header, the header, the values of all
// tensors without a gap. The header is a JSON object: for each tensor its dtype, shape and place.
// It also has, under __metadata__, strings that are not read here. It is padded with spaces to a
// multiple of 8.
#pragma once

#include "storage/tensor_file.hpp"

#include <span>
#include <string>
#include <string_view>

namespace troupe::storage::detail {

/// Returns the content of a file. Errors: invalid_argument (a tensor named __metadata__).
result<std::string> encode_safetensors(std::span<const tensor> tensors);

/// Returns tensors in the order of their values; those for which `wants` is false have none. With
/// `wants`, a tensor that cannot be read has the reason as `tensor::unread`. Memory: a small
/// multiple of the input. Errors: invalid_argument (dtype other than F16, BF16, F32 and F64),
/// malformed.
result<std::vector<tensor>> decode_safetensors(std::string_view bytes,
                                               const tensor_filter& wants = {});

} // namespace troupe::storage::detail
