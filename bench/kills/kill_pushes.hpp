// Pushes to shards while those who push are killed and started again, and connections are cut. In
// the end the values that the shards hold tell how often each push was applied.
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
  std::uint64_t repeated = 0; ///< Acknowledged as applied before: their first receipt was lost.
  std::uint64_t lost = 0;     ///< Batches that some element misses.
  std::uint64_t doubled = 0;  ///< Batches that some element has more than once.
  double seconds = 0;
  std::vector<std::string> problems;
};

/// Breaks something `plan.rounds` times: a third each kills a client, cuts a connection from the
/// client's side and cuts one from the server's. A client is started again with the batches that
/// this process does not know to be acknowledged, and some before them.
push_figures break_pushes(const link_kind& kind, const kill_plan& plan);

/// What a child of break_pushes does.
int play_push_part(const json& part);

} // namespace troupe::bench
