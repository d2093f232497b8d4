// Plays members of a job: spawns their actors by their plan. A process plays one plan; threads and
// virtual time play all of them in one process.
#pragma once

#include "actors/graph/launch/member_plan.hpp"
#include "actors/graph/launch/simulation.hpp"
#include "actors/checkpointer.hpp"
#include "actors/kv.hpp"
#include "actors/lane_carrier.hpp"
#include "actors/roles/coordinator/coordinator_actor.hpp"
#include "actors/roles/server/hogwild.hpp"
#include "actors/roles/server/server_actor.hpp"
#include "actors/roles/worker/router_actor.hpp"
#include "actors/roles/worker/worker_actor.hpp"
#include "base/log.hpp"
#include "base/notice.hpp"

#include "caf/actor.hpp"
#include "caf/actor_system.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// Things around the members of a process that another process cannot have.
struct surroundings {
  caf::actor_system& system;
  /// The graph that this process made; null: its members call no code of the program but
  /// `functions`. It outlives the members.
  const plan* graph = nullptr;
  server_functions functions{};
  given_values given{}; ///< The first values of tables, where this process read them.
  /// The process may end and start again while the job goes on.
  bool may_start_again = false;

  log_sink log{};
  notice_sink waits{};           ///< Takes notices of work that cannot be done at present.
  std::function<void()> works{}; ///< Called, perhaps again, when a member has done work.

  /// Returns the way of a member to the coordinator.
  std::function<coordinator_connector(const member_id&)> connector_of{};
  /// Where others reach the member; empty if its role does not listen.
  std::string address{own_process_address};
  std::function<replica_sink(const member_address&)> to_replicas{};
  server_connector to_servers{};
  /// Returns the links of a member's lanes, without a room. `is_reached`: a channel leads to it.
  std::function<lane_options(const member_id&, bool is_reached)> lanes_of{};
  std::shared_ptr<shared_tables> shared{}; ///< The memory of a job that has one for all workers.

  /// Opens the coordinator's store; null: that beside the checkpoints.
  std::function<result<std::unique_ptr<storage::coordinator_store>>()> open_store{};
  /// Figures of the links of this process, which its first worker reports; null: it has none.
  std::function<std::chrono::nanoseconds()> window_wait{};
  std::function<request_traffic()> traffic{};
  simulation* simulated = nullptr; ///< Runs the actors; null: threads run them.
};

/// The actors of a member.
struct played {
  /// The router and the stages of workers, in the order in which they were spawned.
  std::vector<caf::actor> path{};
  std::vector<caf::actor> members{}; ///< They end with the job.
  coordinator_service coordinator{}; ///< Set for a coordinator.
  server_handle server{};            ///< Set for a server that has an actor for its requests.
};

/// Spawns the actors of a process. Requires: a role that launchers start; for workers, a graph.
/// Errors, of a coordinator alone: those of spawn_coordinator() and of surroundings::open_store.
result<played> play(const member_plan& what, const surroundings& in);

/// Returns the options of a coordinator without a store.
coordinator_setup setup_of(const member_plan& what, const surroundings& in);
/// Returns the options of a server.
server_options options_of_server(const member_plan& what, const surroundings& in);
/// Returns the options of one worker of the process, without those that its path decides.
worker_options options_of_worker(const member_plan& what, const member_id& who,
                                 const surroundings& in);
/// Returns the options of the member's checkpointer.
checkpointer_options options_of_files(const member_plan& what);
/// Returns the limits of the links of a process.
send_limits limits_of(const member_plan& what);
/// Returns a client of the job's values, which asks them as the workers of the plan do.
store_client spawn_client(const member_plan& what, const surroundings& in);

} // namespace troupe
