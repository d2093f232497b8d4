// Base64 (RFC 4648, with padding), in which JSON carries bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe::storage::detail {

std::string to_base64(std::string_view bytes);
/// Nothing where the text is not what to_base64() makes.
std::optional<std::string> from_base64(std::string_view text);

} // namespace troupe::storage::detail
