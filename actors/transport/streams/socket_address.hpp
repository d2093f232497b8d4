// Turns endpoints into the system's socket addresses, and back.
#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Returns whether only processes of this host can reach it: 127.0.0.0/8, ::1, "localhost".
bool is_loopback(const endpoint& where);
/// Returns whether it is a number, in any spelling, that is no address of a single host. These are
/// all addresses of this host (0.0.0.0, 0, ::, 0::0, ::ffff:0.0.0.0), multicast and broadcast.
bool is_no_host(const endpoint& where);

/// Returns where a descriptor is bound. Errors: io_failed, invalid_argument (no IP socket).
result<endpoint> local_endpoint(int descriptor);

/// The way to another process: its numeric address, and the address of this host from which packets
/// to it leave.
struct route {
  endpoint there;
  std::string here;
};

/// Resolves a name, which may take long. Picks its first address that can be routed to, IPv4 before
/// IPv6. Errors: invalid_argument (no such name), io_failed (no route).
result<route> route_to(const endpoint& where);

namespace detail {

struct socket_address {
  sockaddr_storage storage{};
  socklen_t size_bytes = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// Returns the addresses of an endpoint in the system's order of preference; never empty. A name
/// may block as long as the resolver takes; a numeric address never blocks. Errors:
/// invalid_argument.
result<std::vector<socket_address>> resolve(const endpoint& where);
/// Returns the addresses of a numeric address at once; nullopt for a name.
std::optional<std::vector<socket_address>> numeric_address(const endpoint& where);

result<endpoint> endpoint_of(const socket_address& address);
/// Requires: an IP address.
void set_port(socket_address& address, std::uint16_t port);

} // namespace detail
} // namespace troupe
