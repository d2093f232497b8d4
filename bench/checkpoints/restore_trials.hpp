// Restores checkpoints of a number of servers on other numbers of servers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::bench {

/// The results for a checkpoint of `servers` servers, restored on 1, 2, ... servers_max.
struct restore_figures {
  std::string tables; ///< "asp", "bsp" or "asp and bsp".
  std::uint32_t servers = 0;
  std::uint64_t files = 0;
  double megabytes = 0;
  std::uint64_t restored = 0;   ///< Numbers of servers tried.
  std::uint64_t parameters = 0; ///< Restores with equal exported parameters.
  std::uint64_t states = 0;     ///< With equal optimiser state, step counts and versions.
  std::uint64_t applied = 0;    ///< With equal applied batches, as held and as reported.
  std::uint64_t clocks = 0;     ///< With equal clocks applied.
  std::uint64_t ends = 0;       ///< With all of it equal at the end of the job.
  std::vector<std::string> wrong;
};

/// Trains the servers of three jobs (all tables asp, all bsp, half of them each), which write two
/// checkpoints and go on to the end. The second checkpoint is restored on each number of servers
/// and compared with the memory at its cut. It is then trained to the end and compared with the
/// uninterrupted run. Throws std::runtime_error.
std::vector<restore_figures> restore_on_others(std::uint32_t servers_max, std::uint64_t seed);

} // namespace troupe::bench
