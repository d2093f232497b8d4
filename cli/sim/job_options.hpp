// What kind of job a simulated one is.
#pragma once

#include "actors/protocol/coordinator/coordinator.hpp"
#include "actors/protocol/worker/read_target.hpp"
#include "serialization/job.hpp"

#include <chrono>
#include <cstdint>
#include <random>

namespace troupe::sim {

struct job_options {
  job_spec job;
  std::uint32_t slow_workers = 0;  ///< Judged, 20 times as hastily as others.
  std::uint32_t spare_servers = 0; ///< May be added.
  std::uint32_t lease_batches = 8;
  std::uint64_t checkpoint_clocks = 0;
  std::uint32_t pulls_ahead = 0; ///< asp: batches that values are pulled for while one is computed.
  read_target reads = read_target::head;
  std::uint32_t workers_per_process = 1; ///< More share a reducer.
  std::chrono::milliseconds reduce_wait{100};
  bool resume = false; ///< At the end of the faults everything dies at once, and is resumed.
};

/// `calm`: nothing dies at once.
job_options draw_job(std::mt19937_64& random, bool no_faults);

coordinator_options coordinator_options_of(const job_options& what, bool resume);

} // namespace troupe::sim
