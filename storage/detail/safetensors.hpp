// The .safetensors format: u64 length of the header, the header, the values of all tensors without
// a gap. The header is a JSON object: for each tensor its dtype, shape and place, and, under
// __metadata__, strings that are not read here. Padded with spaces to a multiple of 8.
#pragma once

#include "storage/tensor_file.hpp"

#include <span>
#include <string>
#include <string_view>

namespace troupe::storage::detail {

/// Errors: invalid_argument (a tensor named __metadata__).
result<std::string> encode_safetensors(std::span<const tensor> tensors);

/// In the order of the values. Errors: invalid_argument (dtype other than F32), malformed.
result<std::vector<tensor>> decode_safetensors(std::string_view bytes);

} // namespace troupe::storage::detail
