#include "actors/transport/make_stream.hpp"

#include "actors/transport/streams/socket_stream.hpp"
#include "actors/transport/streams/tls_stream.hpp"
#include "actors/transport/streams/unix_stream.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::detail {

namespace {

socket_tuning tuning_of(const transport_options& options) {
  return {options.silence_timeout, options.congestion_control};
}

/// Wraps a TCP stream in TLS if the transport is configured for it; there is no fallback.
std::unique_ptr<stream> secured(std::unique_ptr<stream> plain, const transport_options& options,
                                link_side side, const socket_address& peer) {
  if (!plain || !options.tls)
    return plain;
  const auto where = endpoint_of(peer);
  return std::make_unique<tls_stream>(options.tls, std::move(plain), side,
                                      where ? where->host : std::string{});
}

} // namespace

std::vector<socket_address> addresses_to_try(const std::vector<socket_address>& addresses,
                                             const transport_options& options) {
  std::vector<socket_address> all;
  for (const socket_address& each : addresses)
    if (options.unix_sockets)
      std::ranges::copy(unix_addresses_for(each), std::back_inserter(all));
  std::ranges::copy(addresses, std::back_inserter(all));
  return all;
}

std::unique_ptr<stream> connect_stream(const socket_address& where,
                                       const transport_options& options, int& error) {
  if (where.storage.ss_family == AF_UNIX)
    return unix_stream::connect(where);
  return secured(socket_stream::connect(where, tuning_of(options), error), options,
                 link_side::connector, where);
}

accepted_stream accept_stream(descriptor socket, const socket_address& peer,
                              const transport_options& options, const endpoint& beside) {
  if (peer.storage.ss_family == AF_UNIX) {
    auto made = unix_stream::accept(std::move(socket), to_string(beside));
    const std::string name = made ? made->peer() : "another user's process";
    return {std::move(made), name};
  }
  const auto where = endpoint_of(peer);
  auto plain = std::make_unique<socket_stream>(std::move(socket), tuning_of(options));
  return {secured(std::move(plain), options, link_side::acceptor, peer),
          where ? to_string(*where) : "a peer without an address"};
}

} // namespace troupe::detail
