#include "kernels/schedules/collect.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace troupe::kernels {

collection collect(const schedule& all_reduce) {
  const std::uint32_t devices = all_reduce.devices, nowhere = devices;
  assert(all_reduce.goal == collective::all_reduce && devices > 0);
  collection made{all_reduce, std::vector(all_reduce.chunks, devices == 1 ? 0 : nowhere)};
  made.plan.steps.clear();
  // The number of devices whose numbers are in each place's chunk. No number is ever added twice,
  // so a chunk is complete when this equals the number of devices.
  std::vector<std::uint32_t> parts((devices + all_reduce.staging) * std::size_t{made.plan.chunks});
  std::fill_n(parts.begin(), devices * std::size_t{made.plan.chunks}, 1u);
  const auto parts_of = [&](std::uint32_t place, std::uint32_t chunk) -> std::uint32_t& {
    return parts[place * std::size_t{made.plan.chunks} + chunk];
  };
  for (const auto& step : all_reduce.steps) {
    auto& home = made.homes[step.chunk];
    if (home != nowhere)
      continue;
    made.plan.steps.push_back(step);
    auto& to = parts_of(step.to, step.chunk);
    to = parts_of(step.from, step.chunk) + (step.kind == step_kind::reduce ? to : 0);
    if (to == devices && step.to < devices)
      home = step.to;
  }
  return made;
}

} // namespace troupe::kernels
