// Carries all messages between processes: the links of one process, which one thread serves beside
// the actors.
#pragma once

#include "actors/transport/streams/socket_address.hpp"
#include "actors/transport/streams/tls_context.hpp"
#include "base/error.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Names one connection of this process; never reused.
using link_id = id<struct link_tag, std::uint64_t>;

struct transport_options {
  /// Time to look up a name, make a connection and receive both hellos.
  std::chrono::milliseconds handshake_timeout{3000};
  /// A link over which no bytes arrive for this time is lost. The transport sends a sign of life
  /// after a quarter of it, so an idle link is not silent. Below 1 s, a busy machine would be
  /// mistaken for a dead one. Both sides need about the same value.
  std::chrono::milliseconds silence_timeout{10'000};
  /// Bytes queued for one link beyond which send() drops it as lost: the peer does not read. A
  /// single message may be larger. A lane has up to lane_bytes_max and one parcel under way.
  std::size_t queue_bytes_max = std::size_t{2} << 30;
  /// Connections accepted at a time; more are closed at once.
  std::size_t links_max = 4096;
  /// Whether an acceptor with a secret admits a peer without one, as needed for another host to
  /// join.
  bool admit_without_secret = false;
  /// TCP congestion control of each socket: "cubic", "reno", "bbr"; empty: the system's default.
  /// Ignored if the system lacks or forbids it. On one host bbr, which paces, reaches about half
  /// the rate of the others.
  std::string congestion_control{};
  /// Whether processes of one user on one host use Unix sockets, which every listener then has
  /// beside its TCP socket. They halve latency and work.
  bool unix_sockets = true;
  /// Whether such processes leave large tensors in memory that both have mapped: one copy instead
  /// of two, at several times the speed.
  bool arena = true;
  /// Bytes of address space of an arena, for each link and direction. Memory is used as far as
  /// tensors were under way or held at a time. It goes back to the system after one to two
  /// silence_timeout without tensors. Tensors that do not fit go over the socket. A multiple of
  /// 4096, from 64 KiB to 4 GiB.
  std::size_t arena_bytes = std::size_t{256} << 20;
  /// Encrypts all links over TCP, and has each peer prove its role. Null: plain text without proof,
  /// so both sides need it or neither. Unix sockets stay plain: the system vouches for their peers.
  std::shared_ptr<const tls_context> tls{};
  /// Resolves a name to addresses. Called on a thread of its own, may block; only tests change it.
  std::function<result<std::vector<detail::socket_address>>(const endpoint&)> resolve =
    detail::resolve;
};

/// Callbacks about links. Called on the transport's thread, one at a time; must not block.
struct link_events {
  /// The handshake succeeded. `local`: the address of this side, for telling others where this
  /// process is; empty if it has none.
  std::function<void(link_id, const hello& peer, const std::string& local)> opened;
  std::function<void(link_id, message)> received;
  /// The link's last call: once for each connect() and each opened link, also after close().
  std::function<void(link_id, const failure& why)> lost;
  /// A peer was refused before its link opened (garbage, other version, other job). For logs.
  std::function<void(const std::string& peer_address, const failure& why)> rejected;
  /// Ends the calls of one round of the poller. Short messages sent in them and in this call leave
  /// together. Also called after rounds without calls, and after the last `lost`.
  std::function<void()> settle{};
  /// No peer can be accepted for lack of something, such as open files; retried now and then.
  /// Called once for each lack, and with an empty text when it is over.
  std::function<void(const std::string& why)> hampered{};
};

/// Thread-safe. The destructor closes all links without waiting for peers: queued messages are
/// dropped, and `lost` is called for each link. It joins the thread and waits for a name that is
/// being looked up. It must not run inside a callback.
///
/// On a link, each side sends a preamble (handshake.hpp) and a hello; the connecting side begins.
/// Then messages go both ways in fragments (fragment.hpp). A side that refuses the other sends a
/// refusal instead of its hello, or at any later time, and closes.
class transport {
public:
  /// `self` is the first message of each link. A peer is refused with version_mismatch if its
  /// version differs. It is refused with wrong_job if its job differs, or if both sides have a
  /// secret (not 0) and they differ. An acceptor with a secret also refuses a peer without one,
  /// unless admit_without_secret is set; it does not tell that peer the secret.
  /// Throws std::system_error if the system has no descriptors or threads left.
  transport(hello self, link_events events, transport_options options = {});
  ~transport();
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;

  /// Does the destructor's work except freeing memory, so that a callback may be the last of
  /// several owners. Later calls of members have no effect. Not inside a callback; idempotent.
  void stop();

  /// Starts to accept and returns the address. Port 0 is one of `ports`, or any.
  /// Errors: in_use, io_failed, invalid_argument.
  result<endpoint> listen(const endpoint& where, std::optional<port_range> ports = {});
  /// Accepts on a socket that listens already (inherited from the launcher). Takes the descriptor.
  result<endpoint> listen_on(int descriptor);
  /// Begins to connect; `opened` or `lost` follows, perhaps on another thread before this returns.
  /// Never blocks: another thread looks up a name, and that time is part of handshake_timeout.
  link_id connect(const endpoint& where);
  /// Queues a message; never blocks. Messages of one link and traffic_class arrive in order or the
  /// link is lost; a higher class may overtake.
  /// Messages wait until the link opens, and are dropped if it is lost or closed. The values of
  /// pieces are sent from where they are and held until then. On the transport's own thread, short
  /// messages may be written at the end of the round, see link_events::settle.
  /// Returns the bytes of the message's frame; 0 if the link is gone or the message was too long.
  std::size_t send(link_id link, const message& what);
  /// Drops the link once queued messages are sent, or after 1 s.
  void close(link_id link);
  /// Makes the transport call `settle` soon.
  void wake();
  /// Returns whether the caller runs on the thread that makes the callbacks.
  bool on_own_thread() const;

private:
  class engine;
  std::unique_ptr<engine> engine_;
};

/// Opens a listening socket for a child process. It closes on exec: the child that gets it clears
/// FD_CLOEXEC first, or uses dup2(). Errors: as transport::listen.
result<int> make_listener(const endpoint& where, std::optional<port_range> ports = {});

} // namespace troupe
