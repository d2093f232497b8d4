// Holds a host and a port, as text and as a value.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>

namespace troupe {

/// "127.0.0.1:4000" or "[::1]:4000"; names are resolved, port 0 lets the system choose.
struct endpoint {
  std::string host;
  std::uint16_t port = 0;

  bool operator==(const endpoint&) const = default;
};

/// Checks the form only; asks no name server. Errors: invalid_argument.
result<endpoint> parse_endpoint(const std::string& text);
std::string to_string(const endpoint& where);

} // namespace troupe
