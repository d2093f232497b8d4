// The sending half of a link: frames wait here in order until the socket takes them.
#pragma once

#include "actors/links/poller.hpp"
#include "actors/links/socket.hpp"
#include "serialization/wire.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>

namespace troupe::detail {

/// Thread-safe: one lock for each link, held while a piece of a frame is copied to the system. Who
/// sends on an idle link writes at once and saves the way through the transport's thread; that
/// thread itself corks, and writes once what a whole round of events made it send.
///
/// Invariants:
/// (1) Frames leave in the order of send(), each whole; held_ is empty once open.
/// (2) EPOLLOUT is asked for only while queue_ is not empty, and always after a write that left
///     something in it. What was corked since is asked for by flush().
/// (3) After detach() nobody touches the socket or the poller.
class outbox {
public:
  using clock = std::chrono::steady_clock;

  /// drained: nothing waits. waiting: the poller will report EPOLLOUT. overfull: the bound was
  /// passed. broken: the socket refused, error() says why. The last two are final, what was queued
  /// is gone.
  enum class state { drained, waiting, overfull, broken };

  outbox(poller& poll, std::uint64_t key, std::size_t bytes_max);

  // -- any thread --

  /// Takes a frame; before open() it is held back, after close() it is dropped. Returns overfull
  /// and broken once, to whom caused it.
  state send(wire::frame frame);
  /// The same, but writes nothing. True: flush() must be called, after any number of these.
  bool cork(wire::frame frame);
  void close();

  // -- the transport's thread --

  /// The socket is connected and in the poller with EPOLLIN.
  void attach(const stream_socket& socket);
  /// Sends ahead of everything that send() took: a hello, a refusal, a keep-alive.
  void greet(wire::frame frame);
  /// The peer is welcome: what was held back goes out.
  void open();
  state flush();
  state look() const;
  int error() const;
  /// Since when nothing was written; far in the future while something waits.
  clock::time_point idle_since() const;
  void detach();

private:
  struct item {
    wire::frame frame;
    std::size_t part = 0;   ///< 0: the head, i: body[i - 1].
    std::size_t offset = 0; ///< Bytes of the part that were written.

    std::span<const std::byte> rest() const;
    bool done() const { return part > frame.body.size(); }
    void skip(std::size_t& size_bytes);
  };

  // All of these with the lock held.
  bool admit(const wire::frame& frame);
  bool enqueue(wire::frame frame);
  void write(std::size_t budget_bytes);
  std::size_t gather(std::span<iovec> parts, std::size_t& size_bytes);
  void drop_written(std::size_t size_bytes);
  void fail(state how, int error);
  void update_interest();
  state state_now() const;

  poller& poll_;
  const std::uint64_t key_;
  const std::size_t bytes_max_;

  mutable std::mutex mutex_;
  const stream_socket* socket_ = nullptr;
  bool open_ = false;
  bool closed_ = false;
  bool armed_ = false;
  bool corked_ = false; ///< flush() was promised.
  state failed_ = state::drained;
  int error_ = 0;
  std::size_t unsent_bytes_ = 0;
  std::deque<item> held_;
  std::deque<item> queue_;
  clock::time_point last_write_ = clock::now();
};

} // namespace troupe::detail
