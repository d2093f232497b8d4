// Queues a link's outgoing frames, each class in order, until the stream takes them.
#pragma once

#include "actors/transport/frames/arena_writer.hpp"
#include "actors/transport/frames/fragment.hpp"
#include "actors/transport/frames/frame_queue.hpp"
#include "actors/transport/frames/preamble.hpp"
#include "actors/transport/streams/poller.hpp"
#include "actors/transport/streams/stream.hpp"
#include "serialization/wire.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace troupe::detail {

/// Thread-safe: each link has one lock, held while a piece of a frame is copied to the system. A
/// sender on an idle link writes at once, which saves a detour through the transport's thread. That
/// thread corks: it writes the short frames of one round of events together.
///
/// Invariants:
/// (1) Frames of a class leave whole and in the order of send(); held_ is empty once open.
/// (2) A fragment that was begun is finished before another one begins. It always can be: its bytes
///     are in the queue of its class.
/// (3) EPOLLOUT is requested after a write that left bytes. For frames corked since, flush()
///     requests it.
/// (4) After detach() the stream and the poller are not touched.
class outbox {
public:
  using clock = std::chrono::steady_clock;

  /// drained: no frame waits. waiting: frames wait, and EPOLLOUT, open() or a promised flush() will
  /// send them; the caller need not act. overfull: the bound was passed. broken: the stream failed
  /// with error(). The last two are final, and queued frames are dropped.
  enum class state { drained, waiting, overfull, broken };

  outbox(poller& poll, std::uint64_t key, std::size_t bytes_max);

  // -- any thread --

  /// Queues a frame. Before open() it is held back, after close() it is dropped. Returns overfull
  /// or broken once, to the caller that caused it. Later callers, and callers whose frame was
  /// dropped, get waiting.
  state send(traffic_class traffic, wire::frame frame);
  /// Like send(), but a short frame soon after the last write waits for flush(). Returns true if
  /// flush() must be called, once after any number of calls.
  bool cork(traffic_class traffic, wire::frame frame);
  void close();

  // -- the transport's thread --

  /// Takes an established stream, which the poller watches with stream::interest(false).
  void attach(stream& out);
  /// Queues the link's first bytes; they leave with the next frame.
  void begin(const preamble& first);
  /// Sends a hello or a refusal ahead of all frames of send().
  void send_first(wire::frame frame);
  /// Sends a fragment without a piece, as a sign of life.
  void signal(bool arena_mapped);
  /// Queues the frames held back, once the peer is accepted.
  void open();
  /// Sends large tensors through this arena, which the peer has mapped.
  void use(std::unique_ptr<arena_writer> arena);
  /// Calls arena_writer::trim.
  void trim_arena();
  state flush();
  /// Updates the poller's interest, which a read may have changed.
  state refresh();
  int error() const;
  /// Returns the time of the last write; time_point::max() while a frame waits.
  clock::time_point idle_since() const;
  void detach();

private:
  /// The bytes written between two pieces of frames, and the piece that follows them.
  struct fragment {
    fragment() = default;
    explicit fragment(const fragment_header& what);

    std::array<std::byte, preamble_bytes> header{}; ///< A fragment's header, or a preamble.
    std::size_t header_bytes = 0;
    std::size_t header_sent = 0;
    traffic_class traffic = traffic_class::control;
    std::size_t piece_left = 0;

    bool done() const { return header_sent == header_bytes && piece_left == 0; }
  };
  /// How far the queues of all classes have been gathered.
  struct plan {
    std::array<frame_queue::cursor, traffic_classes> at;
    std::array<std::size_t, traffic_classes> bytes_left; ///< Bytes in no fragment yet.
  };

  // These members require the lock.
  bool enqueue(traffic_class traffic, wire::frame frame);
  bool empty() const;
  bool busy() const;
  void write(std::size_t budget_bytes);
  void gather(gather_list& parts, std::size_t size_max);
  void gather(const fragment& from, plan& planned, gather_list& parts, std::size_t size_max) const;
  void commit(std::size_t size_bytes);
  void fail(state how, int error);
  void update_interest();
  state state_now() const;

  frame_queue& queue(traffic_class traffic) { return queues_[static_cast<std::size_t>(traffic)]; }
  wire::frame placed(wire::frame frame) const;

  poller& poll_;
  const std::uint64_t key_;
  const std::size_t bytes_max_;
  std::unique_ptr<arena_writer> arena_;
  std::atomic<arena_writer*> usable_arena_ = nullptr; ///< Set once.

  mutable std::mutex mutex_;
  stream* stream_ = nullptr;
  bool open_ = false;
  bool closed_ = false;
  bool corked_ = false; ///< flush() will be called.
  std::uint32_t interest_ = 0;
  state failed_ = state::drained;
  int error_ = 0;
  std::size_t unsent_bytes_ = 0; ///< Bytes of frames held back or queued.
  std::vector<std::pair<traffic_class, wire::frame>> held_;
  std::array<frame_queue, traffic_classes> queues_;
  fragment begun_;               ///< Sent first; done() if there is none.
  std::deque<fragment> signals_; ///< Fragments without pieces, sent before the classes.
  std::deque<fragment> planned_; ///< Scratch of one write; a deque, because headers must not move.
  clock::time_point last_write_ = clock::now();
};

} // namespace troupe::detail
