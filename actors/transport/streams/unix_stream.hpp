// Streams between processes of one user on one host: Unix sockets under abstract names, which
// vanish with the process and can pass descriptors.
#pragma once

#include "actors/transport/streams/socket_stream.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::detail {

/// "troupe:127.0.0.1:40123", beside the TCP socket of that address.
socket_address unix_address(const endpoint& beside);
/// The names under which a process of this host that listens at `where` may be found: that of the
/// address itself, and where it is a loopback address those of the wildcards.
std::vector<socket_address> unix_addresses_for(const socket_address& where);
/// Listens beside a TCP socket. Empty where the name is taken, or the system has no such sockets.
descriptor open_unix_listener(const endpoint& beside);

class unix_stream : public socket_stream {
public:
  /// Null where nobody listens there, or another user does.
  static std::unique_ptr<unix_stream> connect(const socket_address& where);
  /// Null where the peer is another user's. `local`: what local() returns.
  static std::unique_ptr<unix_stream> accept(descriptor accepted, std::string local);

  transfer write(std::span<iovec> parts) override;
  transfer read(std::span<iovec> places) override;
  std::string local() const override { return local_; }
  bool passes_descriptors() const override { return true; }
  void pass(descriptor what) override { passing_ = std::move(what); }
  descriptor take_passed() override;
  /// "process 1234".
  std::string peer() const;

private:
  unix_stream(descriptor owned, std::string local);

  bool of_this_user() const;
  void keep_passed(msghdr& header);

  const std::string local_;
  descriptor passing_; ///< The writer's.
  descriptor passed_;  ///< The reader's ...
  bool taken_ = false; ///< ... until take_passed().
};

} // namespace troupe::detail
