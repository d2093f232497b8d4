// Runs a worker: pulls values, has the user's trainer compute the gradient of the next batch, and
// pushes it.
#pragma once

#include "actors/protocol/worker/flow_control.hpp" // request_traffic
#include "actors/kv.hpp"
#include "actors/lane_carrier.hpp"
#include "actors/protocol/worker/step_planner.hpp"
#include "actors/roles/worker/gradient_actor.hpp"
#include "actors/roles/worker/router_actor.hpp"
#include "base/notes.hpp"

#include "caf/actor_system.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

struct worker_options {
  member_id self;
  job_spec job;
  std::string host{}; ///< Name of the machine, whose workers may be held back together.
  step_planner_options step_planner{};
  /// Returns time to add to the next step, which makes a straggler for experiments. May be null.
  std::function<std::chrono::nanoseconds()> slowness{};
  /// False: the trainer computes on the scheduler's threads, where it keeps other actors waiting.
  bool own_thread = true;
  /// Returns the time that its requests have waited for links (process_links.hpp); null: there are
  /// no links.
  std::function<std::chrono::nanoseconds()> window_wait{};
  /// Returns the bytes of its requests and their replies on links; null: there are no links.
  std::function<request_traffic()> traffic{};
  /// Returns the bytes of values that its store moved in its place; null: its requests move them.
  std::function<request_traffic()> moved{};
  /// Fills in the counters of its process's reducer; null: there is no reducer.
  std::function<void(worker_counters&)> reduced{};
  std::function<void()> works{};          ///< Called when a batch is acknowledged; may be null.
  std::shared_ptr<program_notes> notes{}; ///< The notes that it reports; may be null.
  /// Pulls return only blocks of dense tables that changed since the last pull. Costs memory: the
  /// values of the last pull are kept.
  bool delta_pulls = false;
  lane_options ports{};           ///< Those of its trainer.
  std::vector<table_id> tables{}; ///< Those that it pulls and pushes; empty: all.
  /// Makes the actor that computes its gradients; null: spawn_gradient_actor().
  std::function<gradient_actor(caf::actor_system&, gradient_thread)> gradients{};
  /// Leaves gradients on a device. The kv must be a reduce stage, which accepts them.
  bool keep_on_device = false;
};

/// Spawns a worker, which is a member. Its trainer computes in a gradient actor of its own.
///
/// Lifetime:  until desired_state::stop; the gradient actor ends with it.
/// Capacity:  values of step_planner.ahead_max + 1 pulls (delta_pulls: one more), gradients of
///            step_planner.pushes_in_flight_max + 2 batches.
/// `store`:   its views receive each new view.
member_handle spawn_worker(caf::actor_system& system, worker_options options, trainer_factory make,
                           store_client store, coordinator_connector connect);

} // namespace troupe
