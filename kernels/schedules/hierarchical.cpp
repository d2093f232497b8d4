#include "kernels/schedules/strategies.hpp"

#include <cassert>

namespace troupe::kernels {

namespace {

using device_groups_view = std::span<const std::vector<std::uint32_t>>;

std::uint32_t device_count(device_groups_view groups) {
  std::size_t count = 0;
  for (const auto& group : groups)
    count += group.size();
  return static_cast<std::uint32_t>(count);
}

/// Adds the steps of `inside` in every group, each chunk as `cuts` chunks.
void add_inside(schedule& made, device_groups_view groups, const schedule& inside,
                std::uint32_t cuts) {
  for (const auto& step : inside.steps)
    for (const auto& group : groups)
      for (std::uint32_t cut = 0; cut < cuts; ++cut)
        made.steps.push_back(
          {group[step.from], group[step.to], step.chunk * cuts + cut, step.kind});
}

} // namespace

schedule hierarchical(device_groups_view groups, const schedule& scatter, const schedule& across,
                      const schedule& gather) {
  assert(scatter.goal == collective::reduce_scatter && gather.goal == collective::all_gather);
  assert(scatter.chunks == gather.chunks && across.devices == groups.size());
  const std::uint32_t cuts = across.chunks;
  schedule made{collective::all_reduce, device_count(groups), 0, scatter.chunks * cuts, {}};
  add_inside(made, groups, scatter, cuts);
  for (const auto& step : across.steps)
    for (std::uint32_t chunk = 0; chunk < scatter.chunks; ++chunk) {
      const auto owner = owner_of_chunk(scatter, chunk);
      made.steps.push_back(
        {groups[step.from][owner], groups[step.to][owner], chunk * cuts + step.chunk, step.kind});
    }
  add_inside(made, groups, gather, cuts);
  return made;
}

schedule hierarchical_by_leaders(device_groups_view groups, const schedule& across) {
  assert(across.devices == groups.size() && across.staging == 0);
  schedule made{collective::all_reduce, device_count(groups), 0, across.chunks, {}};
  const auto add_members = [&](step_kind kind) {
    for (std::uint32_t chunk = 0; chunk < across.chunks; ++chunk)
      for (const auto& group : groups)
        for (std::size_t i = 1; i < group.size(); ++i)
          made.steps.push_back(kind == step_kind::reduce
                                 ? schedule_step{group[i], group[0], chunk, kind}
                                 : schedule_step{group[0], group[i], chunk, kind});
  };
  add_members(step_kind::reduce);
  for (const auto& step : across.steps)
    made.steps.push_back({groups[step.from][0], groups[step.to][0], step.chunk, step.kind});
  add_members(step_kind::copy);
  return made;
}

} // namespace troupe::kernels
