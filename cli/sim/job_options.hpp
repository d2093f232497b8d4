// Draws the options of a simulated job.
#pragma once

#include "actors/protocol/coordinator/coordinator.hpp"
#include "actors/protocol/worker/fault_stage.hpp"
#include "actors/protocol/worker/router.hpp"
#include "serialization/job.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>

namespace troupe::sim {

/// The modes of simulated jobs: all that have servers.
inline constexpr auto simulated_modes = [] {
  constexpr auto has_servers = [](const mode_traits& x) { return !x.one_memory; };
  std::array<mode_traits, std::ranges::count_if(mode_rows, has_servers)> made{};
  std::ranges::copy_if(mode_rows, made.begin(), has_servers);
  return made;
}();

/// The most parts of a line.
inline constexpr std::uint32_t line_parts_max = 3;

struct job_options {
  job_spec job;
  std::uint32_t slow_workers = 0;  ///< Watched by a detector 20 times as hasty as others.
  std::uint32_t spare_servers = 0; ///< Servers that may be added.
  std::uint32_t lease_batches = 8;
  std::uint32_t leases_ahead = 2; ///< 1: a worker may end its batches before it gets new ones.
  std::uint64_t checkpoint_clocks = 0;
  std::uint32_t pulls_ahead = 0; ///< Batches whose values are pulled while one is computed.
  read_target reads = read_target::head;
  std::uint32_t workers_per_process = 1; ///< Workers of one process share a reducer.
  std::chrono::milliseconds reduce_wait{100};
  bool has_stage = false;                    ///< A stage stands before the reducer.
  std::optional<fault_rates> stage_faults{}; ///< Of that stage; nullopt: it passes all on.
  std::uint64_t window_bytes = 0;            ///< See request_window_options.
  std::uint32_t line_parts = 1; ///< Parts of each worker's line, which have a table each.
  std::size_t apply_batch = 1;  ///< Pushes that a server applies in one pass.
  bool resume = false;          ///< At the end of the faults all processes die; the job is resumed.
};

/// Draws the options. `no_faults`: the processes do not all die at once.
job_options draw_job(std::mt19937_64& random, bool no_faults);

/// Makes each worker the first part of a line, and gives each part a table. Does nothing in bsp.
void make_lines(job_options& what, std::uint32_t parts);

coordinator_options coordinator_options_of(const job_options& what, bool resume);

} // namespace troupe::sim
