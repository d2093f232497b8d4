// Restores checkpoints of some servers on other numbers of servers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::bench {

/// The checkpoint of one number of servers, restored on 1, 2, ... servers_max.
struct restore_figures {
  std::string tables; ///< "asp", "bsp" or "asp and bsp".
  std::uint32_t servers = 0;
  std::uint64_t files = 0;
  double megabytes = 0;
  std::uint64_t restored = 0; ///< Numbers of servers tried.
  std::uint64_t parameters =
    0;                      ///< In how many of these exported parameters were the same bytes ...
  std::uint64_t states = 0; ///< ... and optimiser state, counts of steps and versions ...
  std::uint64_t marks = 0;  ///< ... each partition's marks, and those that a server reports ...
  std::uint64_t clocks = 0; ///< ... the clocks applied ...
  std::uint64_t ends = 0;   ///< ... and all of it after the rest of the job.
  std::vector<std::string> wrong;
};

/// Servers of three jobs (all tables asp, all bsp, half of them each) train, write two checkpoints
/// and go on to the end. The second checkpoint is restored on each number of servers, compared with
/// what was in memory, trained to the end, and compared with those that were never interrupted.
/// Throws std::runtime_error.
std::vector<restore_figures> restore_on_others(std::uint32_t servers_max, std::uint64_t seed);

} // namespace troupe::bench
