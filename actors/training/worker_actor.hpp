// A worker: pulls values, computes the gradient of its next batch with the user's trainer, pushes
// it.
#pragma once

#include "actors/kv.hpp"
#include "actors/store/router_actor.hpp"
#include "actors/training/trainer.hpp"

#include "caf/actor_system.hpp"

#include <chrono>
#include <functional>
#include <memory>

namespace troupe {

using trainer_factory = std::function<std::unique_ptr<trainer>()>;

struct worker_options {
  member_id self;
  job_spec job;
  /// Pushes that may wait for their receipts. More: less waiting, older gradients.
  std::size_t pushes_in_flight_max = 2;
  /// Added to each step: a straggler, for experiments.
  std::chrono::milliseconds slowness{0};
  /// False: it runs on the scheduler's threads, where a long step keeps others waiting.
  bool own_thread = true;
};

/// A member. It runs on a thread of its own, because the trainer computes there.
///
/// Lifetime:  until orders::stop.
/// Capacity:  parameters once, gradients of pushes_in_flight_max + 1 batches (bsp: of the slots of
///            one clock that it computes).
/// `values`:  told of each new view; the worker is its only user.
member spawn_worker(caf::actor_system& system, worker_options options, trainer_factory make,
                    router_handle values, coordinator_connector connect);

} // namespace troupe
