// A worker: pulls values, has the gradient of its next batch computed with the user's trainer,
// pushes it.
#pragma once

#include "actors/flow_control.hpp" // request_traffic
#include "actors/kv.hpp"
#include "actors/protocol/worker/step_planner.hpp"
#include "actors/roles/worker/gradient_actor.hpp"
#include "actors/roles/worker/router_actor.hpp"

#include "caf/actor_system.hpp"

#include <chrono>
#include <functional>
#include <string>

namespace troupe {

struct worker_options {
  member_id self;
  job_spec job;
  std::string host{}; ///< Name of the machine; workers that share it stand and fall together.
  step_planner_options step_planner;
  /// Returns the delay of the next step, to make a straggler; null: no delay.
  std::function<std::chrono::nanoseconds()> slowness{};
  /// False: the trainer computes on the scheduler's threads, where it keeps others waiting.
  bool own_thread = true;
  /// Time that its requests have waited for windows of links (node.hpp); null: there are none.
  std::function<std::chrono::nanoseconds()> window_wait{};
  /// Bytes of its requests and their answers on links; null: there are no links.
  std::function<request_traffic()> traffic{};
  /// Adds the counters of its process's reducer; null: there is no reducer.
  std::function<void(worker_counters&)> reduced{};
  /// Pulls bring only blocks of dense tables that changed since the last one. Costs memory: the
  /// values of that one are kept.
  bool delta_pulls = false;
  /// Its kv is a reducer, which takes gradients that stay on a device.
  bool keep_on_device = false;
};

/// A member. Its trainer computes in a gradient actor of its own.
///
/// Lifetime:  until desired_state::stop; the gradient actor ends with it.
/// Capacity:  values of step_planner.ahead_max + 1 pulls (with delta_pulls of one more), gradients
/// of pipeline.pushes_in_flight_max + 2 batches.
/// `values`:  told of each new view; the worker is its only user.
member_handle spawn_worker(caf::actor_system& system, worker_options options, trainer_factory make,
                           router_handle values, coordinator_connector connect);

} // namespace troupe
