// Simulates a training with one thread, a clock that stands still during any work, and times drawn
// from a seed.
#pragma once

#include "actors/kv.hpp"
#include "base/clock.hpp"

#include "caf/actor_system.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace caf::scheduler {
class test_coordinator;
}

namespace troupe {

/// The time that something takes, drawn anew with each call.
using drawn_time = std::function<std::chrono::nanoseconds()>;

/// Runs the actors of a system one after the other, in the caller's thread, and moves their clock.
/// As long as no actor has a thread of its own, the run is a function of the seed.
///
/// The network keeps the order of messages on a line, and loses none.
class simulation {
public:
  /// `system`: made with actor_config{0}; outlives this.
  simulation(caf::actor_system& system, std::uint64_t seed);
  /// Drops pending messages, which otherwise keep the actors that wait for them alive.
  ~simulation();
  simulation(const simulation&) = delete;
  simulation& operator=(const simulation&) = delete;

  /// Runs all events that are due within `time`, each at its time.
  void pass(std::chrono::nanoseconds time);
  std::function<time_point()> clock() const;

  /// Returns the step times of one more worker, each `longer` than usual.
  drawn_time step_times(std::chrono::nanoseconds longer);
  /// Returns the times of messages of further lines.
  drawn_time line_times();
  /// Returns one more line to that server.
  kv line_to(const kv& server);

private:
  drawn_time between(std::chrono::nanoseconds low, std::chrono::nanoseconds high);

  caf::actor_system* system_;
  caf::scheduler::test_coordinator* scheduler_;
  std::mt19937_64 seeds_; ///< Each worker and line draws its own seed.
  std::vector<kv> lines_;
};

} // namespace troupe
