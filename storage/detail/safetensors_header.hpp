// Reads the JSON header of a .safetensors event by event. It builds no tree of values, which would
// take many times the header's size.
#pragma once

#include "base/error.hpp"
#include "storage/detail/tensor_bytes.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::storage::detail {

constexpr const char* safetensors_metadata_key = "__metadata__";

struct safetensors_entry {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0;        ///< Place of its values behind the header.
  std::optional<number_format::kind> type; ///< Nullopt: `dtype`, which cannot be read.
  std::string dtype;                       ///< Empty if `type` is set.
};

/// Returns entries in the header's order; no two have the same name. Errors: malformed. That means
/// no JSON object, other bytes than spaces behind it, a repeated key, or a description without
/// dtype, shape or place.
result<std::vector<safetensors_entry>> parse_safetensors_header(std::string_view text);

} // namespace troupe::storage::detail
