// The links of one process: connections that carry messages, served by one thread of its own beside
// the actors. Everything between processes goes this way.
#pragma once

#include "serialization/error.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe {

/// Names one connection of this process; never reused.
using link_id = id<struct link_tag, std::uint64_t>;

/// "127.0.0.1:4000" or "[::1]:4000"; names are resolved, port 0 lets the system choose.
struct endpoint {
  std::string host;
  std::uint16_t port = 0;

  bool operator==(const endpoint&) const = default;
};

result<endpoint> parse_endpoint(const std::string& text);
std::string to_string(const endpoint& where);
bool is_loopback(const endpoint& where);

struct transport_options {
  /// Time for a connection to be made and both hellos to arrive.
  std::chrono::milliseconds handshake_timeout{3000};
  /// A link over which nothing arrives for so long is lost. Members report every 100 ms, so a
  /// smaller value than 1 s would mistake a busy machine for a dead one.
  std::chrono::milliseconds silence_timeout{10'000};
  /// Bytes queued for one link beyond which send() drops the link as lost: the peer does not read.
  std::size_t queue_bytes_max = std::size_t{1} << 30;
  /// Connections accepted at a time; more are closed at once.
  std::size_t links_max = 4096;
};

/// What happens on links. Called on the transport's thread, one call at a time; must not block.
struct link_events {
  /// The handshake succeeded. `local`: the address of this side, for telling others where we are.
  std::function<void(link_id, const hello& peer, const std::string& local)> opened;
  std::function<void(link_id, message)> received;
  /// Once for each connect() and each opened link, also after close(). Nothing follows it.
  std::function<void(link_id, const failure& why)> lost;
  /// A peer was turned away before its link opened (garbage, other version, other job). For logs.
  std::function<void(const std::string& peer_address, const failure& why)> rejected;
};

struct link_statistics {
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
};

/// Thread-safe. The destructor closes all links without waiting for peers and joins the thread.
class transport {
public:
  /// `self`: sent as the first message of each link. A peer is refused with version_mismatch where
  /// its version differs, with wrong_job where its job differs, or where both sides have a secret
  /// (not 0) and they differ. (An acceptor with a secret lets a peer without one in: it is how
  /// another host joins.)
  transport(hello self, link_events events, transport_options options = {});
  ~transport();
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;

  /// Starts to accept; returns where. Errors: in_use, io_failed, invalid_argument.
  result<endpoint> listen(const endpoint& where);
  /// The same on a socket that listens already (inherited from the launcher). Takes the descriptor.
  result<endpoint> listen_on(int descriptor);
  /// Begins to connect; `opened` or `lost` follows.
  link_id connect(const endpoint& where);
  /// Queues a message; never blocks. Messages of one link arrive in order or the link is lost.
  void send(link_id link, const message& what);
  /// Drops the link after what was queued has been sent or 1 s has passed.
  void close(link_id link);
  link_statistics statistics() const;

private:
  class engine;
  std::unique_ptr<engine> engine_;
};

/// A socket that listens, for passing to a child process. Errors as in transport::listen.
result<int> make_listener(const endpoint& where);
result<endpoint> local_endpoint(int descriptor);

} // namespace troupe
