// Evaluates a job's model: pulls the present parameters and runs the user's evaluators on them.
#pragma once

#include "actors/kv.hpp"
#include "actors/training/evaluation_computer.hpp"

#include "caf/actor_system.hpp"

#include <functional>
#include <vector>

namespace troupe {

/// Runs an evaluation for each number that it receives; calls `done` on its thread.
using evaluator_handle = caf::typed_actor<caf::reacts_to<evaluate_atom, std::uint64_t>>;

/// Spawns an actor that runs evaluations. `own_thread`: if false, the evaluators compute on the
/// scheduler's threads, where they keep other actors waiting.
evaluator_handle spawn_evaluator(caf::actor_system& system, job_spec job, kv values,
                                 std::vector<named_evaluator> nodes,
                                 std::function<void(evaluation_message)> done,
                                 bool own_thread = true);

/// Ends `evaluator`, which has its own thread, and blocks until it has ended. Call it before the
/// actor system ends, which waits for that thread until no reference to `evaluator` is left. CAF's
/// clock holds one for as long as a request of `evaluator` may take, so its timeouts are cancelled
/// here.
void end_evaluator(caf::actor_system& system, const evaluator_handle& evaluator);

} // namespace troupe
