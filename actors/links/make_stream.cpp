#include "actors/links/make_stream.hpp"

#include "actors/links/socket_stream.hpp"
#include "actors/links/unix_stream.hpp"

namespace troupe::detail {

std::unique_ptr<stream> connect_stream(const socket_address& where, const socket_tuning& tuning,
                                       int& error) {
  if (where.storage.ss_family == AF_UNIX)
    return unix_stream::connect(where);
  return socket_stream::connect(where, tuning, error);
}

accepted_stream accept_stream(descriptor socket, const socket_address& peer,
                              const socket_tuning& tuning, const endpoint& beside) {
  if (peer.storage.ss_family == AF_UNIX) {
    auto made = unix_stream::accept(std::move(socket), to_string(beside));
    const std::string name = made ? made->peer() : "another user's process";
    return {std::move(made), name};
  }
  const auto where = endpoint_of(peer);
  return {std::make_unique<socket_stream>(std::move(socket), tuning),
          where ? to_string(*where) : "a peer without an address"};
}

} // namespace troupe::detail
