// Prepares a schedule for a team: for each rank its works, in order, and the works it waits for.
//
// By default a rank does the steps that add to its own buffer and those that copy from it. A step
// with a staging place is done by its device. With team_runner::by_chunk the owner of a chunk does
// all steps on it. So the rank that adds up a chunk also hands it out, while it is in its cache.
// Steps of different chunks touch different memory: a rank takes one group of chunks (one chunk of
// each owner) after the other. Consecutive steps on one chunk, without a wait in between, form one
// work, which is carried out tile by tile.
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

/// Which rank does a step.
enum class team_runner : std::uint8_t {
  by_step,  ///< The rank that is added to, or copied from.
  by_chunk, ///< The owner of the chunk (owner_of_chunk) does all steps on it, on any buffers.
};

/// Requires: fault_of(plan) finds no fault. by_chunk: chunks is a multiple of devices.
team_plan plan_for_team(schedule plan, team_runner runner = team_runner::by_step);

/// Returns the schedule of plan_of_sum: rank 0's buffer gets the sum, in the order of the ranks,
/// ((x0 + x1) + x2) + ..., and is copied to all others.
schedule schedule_for_team(std::uint32_t devices, std::size_t bytes);

/// Returns the fastest plan for a sum in shared memory. Each rank adds up and hands out its own
/// block of all buffers, in chunks that fit its second-level cache. `bytes`: size of the numbers;
/// for private ones of processes, at most the size of a part. Determinism: each number is added up
/// in the order of the ranks, whatever `bytes` is. Cost: at most 2 * bytes / 128 KiB steps for each
/// rank, planned in about 1 us each.
team_plan plan_of_sum(std::uint32_t devices, std::size_t bytes);

} // namespace troupe::kernels
