// The evaluator: pulls the present parameters and lets the user's evaluator look at them.
#pragma once

#include "actors/kv.hpp"
#include "actors/training/trainer.hpp"

#include "caf/actor_system.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace troupe {

/// The result of one evaluation.
struct evaluation_message {
  std::uint64_t number = 0;                   ///< The one it was asked under.
  std::optional<evaluation> found;            ///< Nullopt: the graph has no evaluator.
  std::vector<std::vector<float>> parameters; ///< One array for each table; the rows of sparse ones
                                              ///< are those that the evaluator named.
  std::string failed;                         ///< Not empty: why there is no evaluation.
};

/// Judges one number after the other; `done` is called on its thread.
using evaluator_handle = caf::typed_actor<caf::reacts_to<evaluate_atom, std::uint64_t>>;

/// `own_thread`: else the evaluator computes on the scheduler's threads, where it keeps others
/// waiting.
evaluator_handle spawn_evaluator(caf::actor_system& system, job_spec job, kv values,
                                 evaluator_factory make,
                                 std::function<void(evaluation_message)> done,
                                 bool own_thread = true);

/// Ends an evaluator that has its own thread, and waits until it has ended. Call it before the
/// system ends: the system waits for that thread while a handle of the evaluator exists, and CAF's
/// clock holds one for as long as a request of the evaluator may take.
void end_evaluator(caf::actor_system& system, const evaluator_handle& evaluator);

} // namespace troupe
