// A schedule made ready for a team: for each rank what it does, in order, and whom it waits for.
//
// A rank does the steps that add to its own buffer and those that copy from it; of a step with a
// staging place it is the device that does it. So who adds up a chunk also hands it out, while it
// is in its cache. Steps of different chunks touch different memory: a rank takes one group of
// chunks (one chunk of each owner) after the other. Steps that follow each other on one chunk, with
// nothing to wait for in between, are one piece of work: it is carried out tile by tile.
//
// Determinism: steps that touch the same memory stay in the schedule's order.
#pragma once

#include "kernels/schedules/schedule.hpp"

#include <cstdint>
#include <vector>

namespace troupe::kernels {

struct team_wait {
  std::uint32_t rank = 0;
  std::uint32_t works = 0; ///< So many works of that rank have to be done.
};

/// Some steps on one chunk.
struct team_work {
  std::uint32_t chunk = 0;
  std::vector<team_wait> waits; ///< Before the first step.
  std::vector<schedule_step> steps;
};

struct team_plan {
  schedule source;
  std::uint64_t fingerprint = 0;             ///< Of the source.
  std::vector<std::vector<team_work>> works; ///< Of each rank.
  /// For each rank the steps that its own result depends on, in the schedule's order.
  std::vector<std::vector<schedule_step>> own_steps;
  std::uint32_t works_max = 0; ///< Of any rank.
};

/// Requires: no fault_of(plan).
team_plan plan_for_team(schedule plan);

/// What is fastest for ranks that share memory: each rank adds up and hands out a block of its own,
/// in chunks that fit its second-level cache. `bytes`: of numbers; of private ones of processes
/// those of a part at most.
/// Cost: at most 2 * devices^2 * bytes / (128 KiB * devices) steps, planned in about 1 us each.
schedule schedule_for_team(std::uint32_t devices, std::size_t bytes);

} // namespace troupe::kernels
