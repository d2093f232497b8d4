// Holds a host and a port, and a range of ports, as text and as values.
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

/// Ports of a firewall's rule, 1 or more: "40000-40100", or one port.
struct port_range {
  std::uint16_t first = 1, last = 65535;

  bool operator==(const port_range&) const = default;
};

/// Errors: invalid_argument.
result<port_range> parse_port_range(const std::string& text);
std::string to_string(const port_range& ports);

} // namespace troupe
