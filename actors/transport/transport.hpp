// The links of one process: connections that carry messages, served by one thread of its own beside
// the actors. Everything between processes goes this way.
#pragma once

#include "actors/transport/streams/endpoint.hpp"
#include "actors/transport/streams/tls_context.hpp"
#include "base/error.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// Names one connection of this process; never reused.
using link_id = id<struct link_tag, std::uint64_t>;

struct transport_options {
  /// Time for a name to be looked up, a connection to be made and both hellos to arrive.
  std::chrono::milliseconds handshake_timeout{3000};
  /// A link over which nothing arrives for so long is lost. The transport sends a sign of life
  /// where nothing else was sent for a quarter of it, so an idle link is not silent. A smaller
  /// value than 1 s would mistake a busy machine for a dead one. Both sides need about the same.
  std::chrono::milliseconds silence_timeout{10'000};
  /// Bytes queued for one link beyond which send() drops the link as lost: the peer does not read.
  /// A single message may be larger.
  std::size_t queue_bytes_max = std::size_t{1} << 30;
  /// Connections accepted at a time; more are closed at once.
  std::size_t links_max = 4096;
  /// Whether an acceptor with a secret lets a peer without one in: it is how another host joins.
  bool admit_without_secret = false;
  /// TCP congestion control of each socket: "cubic", "reno", "bbr"; empty: the system's default.
  /// Ignored where the system lacks or forbids it. On one host bbr, which paces, reaches
  /// about half the rate of the others.
  std::string congestion_control{};
  /// Whether processes of one user on one host talk over Unix sockets, which every listener then
  /// has beside its TCP socket: half the latency, half the work.
  bool unix_sockets = true;
  /// Whether they leave large tensors in memory that both have mapped: one copy instead of two, at
  /// several times the speed.
  bool arena = true;
  /// Address space for that, for each link and direction; memory is used as far as tensors have
  /// been on their way or held at a time, and goes back where none was sent for silence_timeout or
  /// twice that. More go over the socket. A multiple of 4096, from 64 KiB to 4 GiB.
  std::size_t arena_bytes = std::size_t{256} << 20;
  /// Encrypts all links over TCP, and has each peer prove its role; without it none is, so both
  /// sides need it or neither. Unix sockets stay plain: the system vouches for their peers.
  std::shared_ptr<const tls_context> tls{};
  /// How a name becomes addresses. Called on a thread of its own, may block; only tests change it.
  std::function<result<std::vector<detail::socket_address>>(const endpoint&)> resolve =
    detail::resolve;
};

/// What happens on links. Called on the transport's thread, one call at a time; must not block.
struct link_events {
  /// The handshake succeeded. `local`: the address of this side, for telling others where we are;
  /// empty where it has none.
  std::function<void(link_id, const hello& peer, const std::string& local)> opened;
  std::function<void(link_id, message)> received;
  /// Once for each connect() and each opened link, also after close(). Nothing follows it.
  std::function<void(link_id, const failure& why)> lost;
  /// A peer was turned away before its link opened (garbage, other version, other job). For logs.
  std::function<void(const std::string& peer_address, const failure& why)> rejected;
  /// The calls above that one round of the poller brought have been made. Short messages that are
  /// sent in them and in this one leave together. Also called after rounds that brought none, and
  /// after the last `lost`.
  std::function<void()> settle{};
  /// Nobody can be let in for lack of something, such as open files; tried again now and then. Once
  /// for each lack; without a text: it is over.
  std::function<void(const std::string& why)> hampered{};
};

/// Thread-safe. The destructor closes all links without waiting for peers (what is queued is gone,
/// `lost` is called for each) and joins the thread; it must not run inside a callback. It waits for
/// a name that is being looked up.
///
/// A link: each side sends a preamble (handshake.hpp) and a hello, the one that connects begins.
/// Then messages go both ways in chunks (chunk.hpp). A side that refuses the other sends a refusal
/// instead of its hello, or at any time later, and closes.
class transport {
public:
  /// `self`: sent as the first message of each link. A peer is refused with version_mismatch where
  /// its version differs, with wrong_job where its job differs, or where both sides have a secret
  /// (not 0) and they differ, or where an acceptor with a secret meets a peer without one (but see
  /// admit_without_secret; it does not tell that peer the secret).
  /// Throws std::system_error where the system has no descriptors or threads left.
  transport(hello self, link_events events, transport_options options = {});
  ~transport();
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;

  /// Does what the destructor does, but for freeing memory; later calls of members do nothing. So
  /// that the last of several owners may be a callback. Not inside a callback; idempotent.
  void stop();

  /// Starts to accept; returns where. Errors: in_use, io_failed, invalid_argument.
  result<endpoint> listen(const endpoint& where);
  /// The same on a socket that listens already (inherited from the launcher). Takes the descriptor.
  result<endpoint> listen_on(int descriptor);
  /// Begins to connect; `opened` or `lost` follows, on another thread perhaps before this returns.
  /// Never blocks: a name is looked up on a thread for that, and its time is part of
  /// handshake_timeout.
  link_id connect(const endpoint& where);
  /// Queues a message; never blocks. Messages of one link and traffic_class arrive in order or the
  /// link is lost; those of a higher class may overtake.
  /// Before the link opens they wait; where it is lost or closed they are dropped. The values of
  /// pieces are sent from where they are and held until then. Called on the transport's own thread
  /// it may write short messages at the end of the round, see link_events::settle.
  /// Returns the bytes of its frame; 0: there is no such link any more, or it was too long.
  std::size_t send(link_id link, const message& what);
  /// Drops the link after what was queued has been sent or 1 s has passed.
  void close(link_id link);
  /// Has `settle` called soon.
  void wake();
  /// Whether the caller runs on the thread that makes the callbacks.
  bool on_own_thread() const;

private:
  class engine;
  std::unique_ptr<engine> engine_;
};

/// A socket that listens, for passing to a child process. It closes on exec: the child that is to
/// have it clears FD_CLOEXEC first, or uses dup2(). Errors as in transport::listen.
result<int> make_listener(const endpoint& where);

} // namespace troupe
