// Bounds the requests of a process: bytes on the way to one peer, and memory of all unanswered
// pushes. A process that pushes faster than a peer applies is slowed down at the first bound,
// refused at the second.
#pragma once

#include "serialization/job.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

namespace troupe {

struct send_limits {
  /// Bytes that open requests to one peer carry or ask for. More: faster over a slow path. Less: a
  /// small request waits behind less. One request alone may be larger.
  std::uint64_t window_bytes = std::uint64_t{128} << 20;
  /// Memory of all unanswered pushes of this process: their values, and their copies on the way. A
  /// push beyond it is refused with `overloaded`.
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  /// Name keys that a peer was sent before, instead of sending them again. False: for measuring.
  bool key_cache = true;
};

/// Returns the limits of a job's workers. In bsp and ssp a pull may wait at a server for other
/// requests, of its own process too, and in bsp a push may. No limit holds those back. Such workers
/// have few requests open anyway: they pull for one step at a time, and push a clock at most.
inline send_limits limits_of(const job_spec& job, send_limits limits) {
  constexpr auto unlimited = std::numeric_limits<std::uint64_t>::max();
  if (has_waiting_pulls(job))
    limits.window_bytes = unlimited;
  if (goes_by_clocks(job))
    limits.memory_bytes = unlimited;
  return limits;
}

/// Bytes of requests and of their replies, whole frames.
struct request_traffic {
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
};

/// Counts the memory of a process's unanswered pushes. Thread-safe.
class push_quota {
public:
  explicit push_quota(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  /// Returns false if it would exceed the bound; one push alone may always go.
  bool take(std::uint64_t bytes) {
    auto taken = taken_.load();
    do {
      if (taken != 0 && taken + bytes > bytes_max_)
        return false;
    } while (!taken_.compare_exchange_weak(taken, taken + bytes));
    return true;
  }
  void take_in_any_case(std::uint64_t bytes) { taken_ += bytes; }
  void give_back(std::uint64_t bytes) { taken_ -= bytes; }

  /// Returns the time that requests waited for an open link with room in its window, in total.
  std::chrono::nanoseconds waited() const { return std::chrono::nanoseconds{waited_ns_.load()}; }
  void add_waited(std::chrono::nanoseconds time) { waited_ns_ += time.count(); }

  request_traffic traffic() const { return {sent_bytes_.load(), received_bytes_.load()}; }
  void add_sent(std::uint64_t bytes) { sent_bytes_ += bytes; }
  void add_received(std::uint64_t bytes) { received_bytes_ += bytes; }

private:
  const std::uint64_t bytes_max_;
  std::atomic<std::uint64_t> taken_ = 0;
  std::atomic<std::int64_t> waited_ns_ = 0;
  std::atomic<std::uint64_t> sent_bytes_ = 0;
  std::atomic<std::uint64_t> received_bytes_ = 0;
};

} // namespace troupe
