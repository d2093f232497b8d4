#include "kernels/executors/team_plan.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>

namespace troupe::kernels {

namespace {

/// Sorts the steps into groups of chunks, one chunk of each owner in a group.
std::vector<schedule_step> in_groups(const schedule& plan) {
  const std::uint32_t groups =
    plan.chunks % plan.devices == 0 ? plan.chunks / plan.devices : plan.chunks;
  auto steps = plan.steps;
  std::ranges::stable_sort(steps, {},
                           [&](const schedule_step& step) { return step.chunk % groups; });
  return steps;
}

std::uint32_t runner_of(const schedule& plan, const schedule_step& step, team_runner runner) {
  if (runner == team_runner::by_chunk)
    return owner_of_chunk(plan, step.chunk);
  const auto wanted = step.kind == step_kind::reduce ? step.to : step.from;
  const auto other = step.kind == step_kind::reduce ? step.from : step.to;
  assert(wanted < plan.devices || other < plan.devices);
  return wanted < plan.devices ? wanted : other;
}

/// Returns the steps for a rank's result, found backwards from it.
std::vector<schedule_step> steps_for(const schedule& plan, std::uint32_t rank) {
  std::vector<bool> needed(std::size_t{plan.devices + plan.staging} * plan.chunks);
  const auto cell = [&](std::uint32_t place, std::uint32_t chunk) {
    return std::size_t{place} * plan.chunks + chunk;
  };
  for (std::uint32_t chunk = 0; chunk < plan.chunks; ++chunk)
    needed[cell(rank, chunk)] = true;
  std::vector<schedule_step> steps;
  for (auto step = plan.steps.rbegin(); step != plan.steps.rend(); ++step)
    if (needed[cell(step->to, step->chunk)]) {
      if (step->kind == step_kind::copy)
        needed[cell(step->to, step->chunk)] = false;
      needed[cell(step->from, step->chunk)] = true;
      steps.push_back(*step);
    }
  std::ranges::reverse(steps);
  return steps;
}

/// Puts steps into works, rank by rank.
class works_maker {
public:
  works_maker(const schedule& plan, team_runner runner)
      : plan_(plan), runner_(runner), works_(plan.devices),
        seen_(plan.devices, std::vector<std::uint32_t>(plan.devices)) {}

  std::vector<std::vector<team_work>> make() && {
    const auto before = dependencies(plan_);
    for (std::uint32_t i = 0; i < plan_.steps.size(); ++i)
      add(plan_.steps[i], before[i]);
    return std::move(works_);
  }

private:
  struct place_of_step {
    std::uint32_t rank, works;
  };

  void add(const schedule_step& step, const std::vector<std::uint32_t>& before) {
    const auto rank = runner_of(plan_, step, runner_);
    std::vector<team_wait> waits;
    for (const auto earlier : before) {
      const auto& at = done_in_[earlier];
      if (at.rank != rank && seen_[rank][at.rank] < at.works) {
        seen_[rank][at.rank] = at.works;
        std::erase_if(waits, [&](const team_wait& wait) { return wait.rank == at.rank; });
        waits.push_back({at.rank, at.works});
      }
    }
    auto& works = works_[rank];
    // A wait inside a work could be for a rank that waits for the first steps of that work.
    if (works.empty() || works.back().chunk != step.chunk || !waits.empty())
      works.push_back({step.chunk, std::move(waits), {}});
    works.back().steps.push_back(step);
    done_in_.push_back({rank, static_cast<std::uint32_t>(works.size())});
  }

  const schedule& plan_;
  const team_runner runner_;
  std::vector<std::vector<team_work>> works_;
  std::vector<std::vector<std::uint32_t>> seen_; ///< For each rank: works of others already waited
                                                 ///< for.
  std::vector<place_of_step> done_in_;           ///< For each step.
};

} // namespace

team_plan plan_for_team(schedule plan, team_runner runner) {
  team_plan made;
  made.fingerprint = fingerprint_of(plan);
  for (std::uint32_t rank = 0; rank < plan.devices; ++rank)
    made.own_steps.push_back(steps_for(plan, rank));
  plan.steps = in_groups(plan);
  made.works = works_maker{plan, runner}.make();
  for (const auto& works : made.works)
    made.works_max = std::max(made.works_max, static_cast<std::uint32_t>(works.size()));
  made.source = std::move(plan);
  return made;
}

schedule schedule_for_team(std::uint32_t devices, std::size_t bytes) {
  // 128 KiB: a chunk and those of all other ranks stay in a cache of 1 MiB. A power of two keeps
  // chunks of common sizes on cache lines.
  constexpr std::size_t chunk_bytes = 128 * 1024;
  std::uint32_t pieces = 1;
  while (std::size_t{devices} * pieces * chunk_bytes < bytes)
    pieces *= 2;
  schedule made{collective::all_reduce, devices, 0, devices * pieces, {}};
  for (std::uint32_t chunk = 0; chunk < made.chunks; ++chunk) {
    for (std::uint32_t from = 1; from < devices; ++from)
      made.steps.push_back({from, 0, chunk, step_kind::reduce});
    for (std::uint32_t to = 1; to < devices; ++to)
      made.steps.push_back({0, to, chunk, step_kind::copy});
  }
  return made;
}

team_plan plan_of_sum(std::uint32_t devices, std::size_t bytes) {
  return plan_for_team(schedule_for_team(devices, bytes), team_runner::by_chunk);
}

} // namespace troupe::kernels
