// Runs an actor of a program: a member of the job, and the thread on which the program's code runs.
#pragma once

#include "actors/kv.hpp"
#include "actors/lane_carrier.hpp"
#include "actors/protocol/worker/flow_control.hpp" // request_traffic
#include "actors/training/own_actor.hpp"
#include "base/notes.hpp"

#include "caf/actor_system.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe {

struct own_actor_options {
  member_id self;
  job_spec job;
  std::string host{}; ///< Name of the machine.
  /// Makes the actor, puts it into its place, and connects its ports, on the thread that uses it.
  /// May throw. The actor may be an inner_actor.
  std::function<std::unique_ptr<own_actor>(port_room&)> make{};
  lane_options ports{};                   ///< It has a room.
  std::function<void()> works{};          ///< Called when it runs for a while; may be null.
  std::shared_ptr<program_notes> notes{}; ///< The notes that it reports; may be null.
  /// Returns the bytes of an inner_actor's requests and their replies on links; null: there are no
  /// links.
  std::function<request_traffic()> traffic{};
  /// Returns the time of the next run() of an inner_actor, in virtual time. May be null.
  std::function<std::chrono::nanoseconds()> slowness{};
  bool own_thread = true; ///< False: it runs on the scheduler's threads.
};

/// Spawns an actor of a program, which is a member.
///
/// Lifetime: until desired_state::stop. Before its end, the program's stop() runs, for at most 5 s.
/// `store`: takes its pulls, and the requests of an inner_actor; its views receive each new view.
member_handle spawn_own_actor(caf::actor_system& system, own_actor_options options,
                              store_client store, coordinator_connector connect);

} // namespace troupe
