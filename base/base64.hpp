// Encodes bytes as Base64 for JSON (RFC 4648, with padding).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe::storage::detail {

std::string to_base64(std::string_view bytes);
/// Returns nullopt unless `text` is exactly the output of `to_base64()`.
std::optional<std::string> from_base64(std::string_view text);

} // namespace troupe::storage::detail
