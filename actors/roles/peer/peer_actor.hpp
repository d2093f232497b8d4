// Runs a peer of a gossip job: the kv of one worker, which has a copy of all values and mixes it
// with those of its neighbours.
#pragma once

#include "actors/kv.hpp"
#include "actors/lane_carrier.hpp"
#include "actors/protocol/gossip/mixing.hpp"
#include "actors/protocol/gossip/neighbour_graph.hpp"
#include "actors/tables/server_functions.hpp"
#include "base/log_sink.hpp"
#include "base/notice.hpp"
#include "serialization/job.hpp"

#include "caf/actor_system.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

struct peer_options {
  member_id self; ///< The worker.
  job_spec job;
  mixing how = mixing::pairwise;
  std::vector<std::uint32_t> neighbours; ///< Numbers of workers, ascending.
  encoding packed_as = encoding::f32;    ///< Values for neighbours: f32, fp16, bf16 or int8.
  server_functions functions{};          ///< Those that the job's tables name.
  bool own_thread = true;
  log_sink log{};
};

/// Returns the ends of a peer's lanes: to and from its neighbours, to and from the collector.
std::vector<channel_end> ends_of_peer(const neighbour_graph& graph, std::uint32_t self);

/// Spawns a peer. It answers its worker when it has values to begin with. `lanes`: a room with
/// ends_of_peer().
///
/// Ordering:  one request at a time, as a worker without pulls ahead sends them.
/// Lifetime:  until its last handle is dropped or it is told to exit.
/// Capacity:  the copy, and for each neighbour the values of two clocks and one change.
store_client spawn_peer(caf::actor_system& system, peer_options options, lane_options lanes);

} // namespace troupe
