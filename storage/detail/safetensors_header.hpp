// The JSON header of a .safetensors, read event by event: no tree of values is built, which would
// take many times the header's size.
#pragma once

#include "base/error.hpp"
#include "storage/detail/tensor_bytes.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::storage::detail {

constexpr const char* safetensors_metadata_key = "__metadata__";

struct safetensors_entry {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0; ///< Of its values, behind the header.
  number_format::kind type = number_format::kind::f32;
};

/// Returns entries in the header's order; no two have one name.
/// Errors: invalid_argument (dtype), malformed (no JSON object, other bytes than spaces behind it,
/// a key that is there twice, a description without dtype, shape or place).
result<std::vector<safetensors_entry>> parse_safetensors_header(std::string_view text);

} // namespace troupe::storage::detail
