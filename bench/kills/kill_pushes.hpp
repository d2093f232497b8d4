// Pushes to shards while clients are killed and restarted, and connections are cut. In the end the
// values of the shards tell how often each push was applied.
#pragma once

#include "bench/child.hpp"
#include "bench/kills/kill_rounds.hpp"
#include "bench/store/transport_kinds.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::bench {

struct push_figures {
  std::string kind;
  std::uint64_t kills = 0, client_cuts = 0, server_cuts = 0;
  std::uint64_t pushes = 0;   ///< Batches, all of which were acknowledged.
  std::uint64_t repeated = 0; ///< Acknowledged as applied before: their first push reply was lost.
  std::uint64_t lost = 0;     ///< Batches that are missing in some element.
  std::uint64_t doubled = 0;  ///< Batches that some element has more than once.
  double seconds = 0;
  std::vector<std::string> problems;
};

/// Breaks something `plan.rounds` times. A third each kills a client, cuts a connection from the
/// client's side and cuts one from the server's. A client is restarted with the batches that this
/// process has not seen acknowledged, and some before them.
push_figures break_pushes(const link_kind& kind, const kill_plan& plan);

/// Plays the part of a child of break_pushes.
int play_push_part(const json& part);

} // namespace troupe::bench
