// Declares the class that a user writes for an actor of a program.
#pragma once

#include "actors/training/ports.hpp"
#include "base/clock.hpp"
#include "base/notes.hpp"

#include <cstdint>

namespace troupe {

/// An actor of a program, in a process of its own; with --threads it has a thread. Its ports are
/// members of it. All of its functions and the callbacks of its ports run on one thread, one after
/// the other. Each may throw: the job then stops with the text. A call of 10 s is named in a line.
/// It has no time limit. Its state does not survive a death.
class own_actor {
public:
  /// The place of an actor in its job.
  struct place {
    std::uint32_t index = 0; ///< Its number in its node.
    std::uint32_t count = 1; ///< Members of its node.
    std::uint64_t seed = 0;  ///< For its randomness: a function of the job's seed and its place.
    node_notes notes = {};   ///< Takes its counts and log lines.
  };

  virtual ~own_actor() = default;
  /// Called once, before all other calls. Set the callbacks of the ports here.
  virtual void start() {}
  /// Called 10 ms after its last call returned. `now`: the time since some moment, virtual with
  /// --simulate.
  virtual void tick(time_point /*now*/) {}
  /// Called once, when all batches of the job are applied or the job stops. Parcels that it sends
  /// may be lost.
  virtual void stop() {}

  /// Returns its place, from start() on.
  const place& where() const { return where_; }
  /// For the shell, before start().
  void put(place where) { where_ = where; }

private:
  place where_;
};
} // namespace troupe
