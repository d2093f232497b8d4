// Prepares a schedule for a team: for each rank its works, in order, and the works it waits for.
//
// A rank does the steps that add to its own buffer and those that copy from it. A step with a
// staging place is done by its device. So the rank that adds up a chunk also hands it out, while it
// is in its cache. Steps of different chunks touch different memory: a rank takes one group of
// chunks (one chunk of each owner) after the other. Consecutive steps on one chunk, without a wait
// in between, form one work, which is carried out tile by tile.
//
// Determinism: steps that touch the same memory stay in the schedule's order.
#pragma once

#include "kernels/schedules/schedule.hpp"

#include <cstdint>
#include <vector>

namespace troupe::kernels {

struct team_wait {
  std::uint32_t rank = 0;
  std::uint32_t works = 0; ///< Number of works of that rank that must be done.
};

/// Some steps on one chunk.
struct team_work {
  std::uint32_t chunk = 0;
  std::vector<team_wait> waits; ///< Before the first step.
  std::vector<schedule_step> steps;
};

struct team_plan {
  schedule source;
  std::uint64_t fingerprint = 0;             ///< Fingerprint of the source.
  std::vector<std::vector<team_work>> works; ///< For each rank.
  /// For each rank the steps that its own result depends on, in the schedule's order.
  std::vector<std::vector<schedule_step>> own_steps;
  std::uint32_t works_max = 0; ///< Largest number of works of a rank.
};

/// Requires: fault_of(plan) finds no fault.
team_plan plan_for_team(schedule plan);

/// Returns the fastest schedule for ranks that share memory. Each rank adds up and hands out its
/// own block, in chunks that fit its second-level cache. `bytes`: size of the numbers; for private
/// ones of processes, at most the size of a part. Cost: at most 2 * devices^2 * bytes / (128 KiB *
/// devices) steps, planned in about 1 us each.
schedule schedule_for_team(std::uint32_t devices, std::size_t bytes);

} // namespace troupe::kernels
