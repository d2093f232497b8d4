// Connects processes of one user on one host by Unix sockets under abstract names. The names vanish
// with the process; the sockets can pass descriptors.
#pragma once

#include "actors/transport/streams/socket_stream.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::detail {

/// Returns "troupe:127.0.0.1:40123", beside the TCP socket of that address.
socket_address unix_address(const endpoint& beside);
/// Returns the names under which a process of this host that listens at `where` may be found. These
/// are the name of the address itself and, for a loopback address, of the wildcards.
std::vector<socket_address> unix_addresses_for(const socket_address& where);
/// Listens beside a TCP socket. Returns an empty descriptor if the name is taken, or the system has
/// no such sockets.
descriptor open_unix_listener(const endpoint& beside);

class unix_stream : public socket_stream {
public:
  /// Returns null if no process of this user listens there.
  static std::unique_ptr<unix_stream> connect(const socket_address& where);
  /// Returns null if the peer belongs to another user. `local`: the result of local().
  static std::unique_ptr<unix_stream> accept(descriptor accepted, std::string local);

  transfer write(std::span<iovec> parts) override;
  transfer read(std::span<iovec> places) override;
  std::string local() const override { return local_; }
  bool passes_descriptors() const override { return true; }
  void pass(descriptor what) override { passing_ = std::move(what); }
  descriptor take_passed() override;
  /// Returns a name such as "process 1234".
  std::string peer() const;

private:
  unix_stream(descriptor owned, std::string local);

  bool of_this_user() const;
  void keep_passed(msghdr& header);

  const std::string local_;
  descriptor passing_; ///< Used by the writer.
  descriptor passed_;  ///< Used by the reader.
  bool taken_ = false; ///< No more are accepted: one was kept or taken.
};

} // namespace troupe::detail
