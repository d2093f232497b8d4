// The sending half of a link: frames wait here, each class in order, until the stream takes them.
#pragma once

#include "actors/transport/frames/arena_writer.hpp"
#include "actors/transport/frames/chunk.hpp"
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

/// Thread-safe: one lock for each link, held while a piece of a frame is copied to the system. Who
/// sends on an idle link writes at once and saves the way through the transport's thread; that
/// thread itself corks: what little a round of events made it send is written once.
///
/// Invariants:
/// (1) Frames of a class leave in the order of send(), each whole; held_ is empty once open.
/// (2) A chunk that was begun is finished before another one begins, and always can be: its bytes
///     are in the queue of its class.
/// (3) EPOLLOUT is asked for after a write that left something. What was corked since is asked for
///     by flush().
/// (4) After detach() nobody touches the stream or the poller.
class outbox {
public:
  using clock = std::chrono::steady_clock;

  /// drained: nothing waits. waiting: frames do, and what will move them is on its way: EPOLLOUT,
  /// open(), or a flush() that was promised; the caller has nothing to do. overfull: the bound was
  /// passed. broken: the stream refused, error() says why. The last two are final, what was queued
  /// is gone.
  enum class state { drained, waiting, overfull, broken };

  outbox(poller& poll, std::uint64_t key, std::size_t bytes_max);

  // -- any thread --

  /// Takes a frame; before open() it is held back, after close() it is dropped. Returns overfull
  /// and broken once, to whom caused it, and waiting to who comes later, as to one whose frame was
  /// dropped.
  state send(traffic_class traffic, wire::frame frame);
  /// The same, but what is little and comes soon after the last write waits for flush(). True: that
  /// must be called, after any number of these.
  bool cork(traffic_class traffic, wire::frame frame);
  void close();

  // -- the transport's thread --

  /// The stream is established and in the poller with stream::interest(false).
  void attach(stream& out);
  /// The first bytes of all; they leave with the next frame.
  void begin(const preamble& first);
  /// Sends ahead of everything that send() took: a hello, a refusal.
  void send_first(wire::frame frame);
  /// Sends a chunk without a piece: a sign of life.
  void signal(bool arena_mapped);
  /// The peer is welcome: what was held back goes out.
  void open();
  /// Large tensors go by this arena, which the peer has mapped.
  void use(std::unique_ptr<arena_writer> arena);
  /// See arena_writer::trim.
  void trim_arena();
  state flush();
  /// Has the poller wait for what the stream wants now, which a read may have changed.
  state refresh();
  int error() const;
  /// Since when nothing was written; far in the future while something waits.
  clock::time_point idle_since() const;
  void detach();

private:
  /// What is written between two pieces of frames, and the piece that follows.
  struct chunk {
    chunk() = default;
    explicit chunk(const chunk_header& what);

    std::array<std::byte, preamble_bytes> header{}; ///< Of a chunk, or a whole preamble.
    std::size_t header_bytes = 0;
    std::size_t header_sent = 0;
    traffic_class traffic = traffic_class::control;
    std::size_t piece_left = 0;

    bool done() const { return header_sent == header_bytes && piece_left == 0; }
  };
  /// How far the classes' queues have been gathered.
  struct plan {
    std::array<frame_queue::cursor, traffic_classes> at;
    std::array<std::size_t, traffic_classes> bytes_left; ///< Of no chunk yet.
  };

  // All of these with the lock held.
  bool enqueue(traffic_class traffic, wire::frame frame);
  bool empty() const;
  bool busy() const;
  void write(std::size_t budget_bytes);
  void gather(gather_list& parts, std::size_t size_max);
  void gather(const chunk& from, plan& planned, gather_list& parts, std::size_t size_max) const;
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
  bool corked_ = false; ///< flush() was promised.
  std::uint32_t interest_ = 0;
  state failed_ = state::drained;
  int error_ = 0;
  std::size_t unsent_bytes_ = 0; ///< Of frames, held back or queued.
  std::vector<std::pair<traffic_class, wire::frame>> held_;
  std::array<frame_queue, traffic_classes> queues_;
  chunk begun_;               ///< Goes first. done(): none was begun.
  std::deque<chunk> signals_; ///< Without pieces; before the classes.
  std::deque<chunk> planned_; ///< Scratch of one write; a deque, because headers must not move.
  clock::time_point last_write_ = clock::now();
};

} // namespace troupe::detail
