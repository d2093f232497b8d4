// Which stream a connection gets.
#pragma once

#include "actors/transport/streams/stream.hpp"
#include "actors/transport/transport.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::detail {

/// The ways to a peer that listens at these addresses, the best first: where a process of this host
/// has a Unix socket beside its TCP socket, that answers at once.
std::vector<socket_address> addresses_to_try(const std::vector<socket_address>& addresses,
                                             const transport_options& options);

/// Begins to connect. Null where that failed at once; `error` is then an errno, or stays as it is
/// where another address may be tried without a word.
std::unique_ptr<stream> connect_stream(const socket_address& where,
                                       const transport_options& options, int& error);

/// A connection that was accepted, and its peer's name in texts.
struct accepted_stream {
  std::unique_ptr<stream> made; ///< Null where the peer is another user's.
  std::string peer;
};

/// `beside`: the TCP address of the listener.
accepted_stream accept_stream(descriptor socket, const socket_address& peer,
                              const transport_options& options, const endpoint& beside);

} // namespace troupe::detail
