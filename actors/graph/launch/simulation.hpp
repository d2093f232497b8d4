// What a training is simulated with: one thread, a clock that stands still while anything is done,
// and times drawn from a seed.
#pragma once

#include "actors/kv.hpp"
#include "base/clock.hpp"

#include "caf/actor_system.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <random>

namespace caf::scheduler {
class test_coordinator;
}

namespace troupe {

/// The time that something takes, drawn anew with each call.
using drawn_time = std::function<std::chrono::nanoseconds()>;

/// Lets the actors of a system run one after the other, in the caller's thread, and moves their
/// clock. While none of them has a thread of its own, what they do is a function of the seed.
///
/// The network keeps the order of what goes over one line, and loses nothing.
class simulation {
public:
  /// `system`: of actor_config{0}; outlives this.
  simulation(caf::actor_system& system, std::uint64_t seed);
  /// Drops what would still have come: those that wait for it are kept by it.
  ~simulation();
  simulation(const simulation&) = delete;
  simulation& operator=(const simulation&) = delete;

  /// Lets everything happen that is due in so long, each thing at its time.
  void pass(std::chrono::nanoseconds time);
  std::function<time_point()> clock() const;

  /// How long each step of one more worker takes, and so much longer.
  drawn_time step_times(std::chrono::nanoseconds longer);
  /// One more line to that server.
  kv line_to(const kv& server);

private:
  drawn_time between(std::chrono::nanoseconds low, std::chrono::nanoseconds high);

  caf::actor_system* system_;
  caf::scheduler::test_coordinator* scheduler_;
  std::mt19937_64 seeds_; ///< Each worker and line has chance of its own.
};

} // namespace troupe
