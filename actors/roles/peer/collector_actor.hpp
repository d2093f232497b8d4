// Runs the collector of a gossip job: a server that has the mean of the peers' copies.
#pragma once

#include "actors/checkpointer.hpp"
#include "actors/kv.hpp"
#include "actors/lane_carrier.hpp"
#include "actors/protocol/gossip/neighbour_graph.hpp"
#include "actors/tables/initial_values.hpp"
#include "actors/tables/server_functions.hpp"
#include "base/clock.hpp"
#include "base/log_sink.hpp"
#include "base/notice.hpp"
#include "serialization/job.hpp"

#include "caf/actor_system.hpp"

#include <functional>
#include <string>

namespace troupe {

struct collector_setup {
  member_id self; ///< A server.
  job_spec job;
  neighbour_graph graph;
  std::string address;          ///< Where its kv listens for other processes.
  server_functions functions{}; ///< Those that the job's tables name.
  given_values given{};         ///< First values of tables that begin with a file's.
  log_sink log{};
  notice_sink waits{};           ///< Gets notices for a person.
  std::function<void()> works{}; ///< Called when a copy comes; may be null.
  bool own_thread = true;
  std::function<time_point()> boot_clock = boot_now; ///< Simulations replace it.
};

/// Returns the ends of the collector's lanes.
std::vector<channel_end> ends_of_collector(const job_spec& job);

/// Spawns a collector, which reports at once. `lanes`: a room with ends_of_collector(). `storage`:
/// null if the job keeps no checkpoints.
///
/// Lifetime:  until desired_state::stop.
/// Capacity:  the newest copy of each peer, and the mean.
server_handle spawn_collector(caf::actor_system& system, collector_setup setup, lane_options lanes,
                              coordinator_connector connect, checkpointer storage);

} // namespace troupe
