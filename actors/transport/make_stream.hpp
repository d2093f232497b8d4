// Chooses the stream that a connection gets.
#pragma once

#include "actors/transport/streams/stream.hpp"
#include "actors/transport/transport.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::detail {

/// Returns the addresses at which to try a peer, best first. A process of this host may have a Unix
/// socket beside its TCP socket, which answers at once.
std::vector<socket_address> addresses_to_try(const std::vector<socket_address>& addresses,
                                             const transport_options& options);

/// Begins to connect. Returns null if that failed at once. `error` is then an errno, or unchanged
/// if another address may be tried without a report.
std::unique_ptr<stream> connect_stream(const socket_address& where,
                                       const transport_options& options, int& error);

/// An accepted connection, and its peer's name for texts.
struct accepted_stream {
  std::unique_ptr<stream> made; ///< Null if the peer belongs to another user.
  std::string peer;
};

/// `beside`: the TCP address of the listener.
accepted_stream accept_stream(descriptor socket, const socket_address& peer,
                              const transport_options& options, const endpoint& beside);

} // namespace troupe::detail
