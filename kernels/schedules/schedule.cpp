#include "kernels/schedules/schedule.hpp"

#include <algorithm>
#include <cassert>
#include <optional>

namespace troupe::kernels {

chunk_range range_of_chunk(std::size_t count, std::uint32_t chunks, std::uint32_t chunk) {
  assert(chunk < chunks);
  const std::size_t size = count / chunks;
  const std::size_t longer = count % chunks; // The first `longer` chunks have one more.
  return {chunk * size + std::min<std::size_t>(chunk, longer), size + (chunk < longer ? 1 : 0)};
}

std::uint32_t owner_of_chunk(const schedule& plan, std::uint32_t chunk) {
  if (plan.goal == collective::broadcast)
    return plan.root;
  assert(plan.chunks % plan.devices == 0);
  return chunk / (plan.chunks / plan.devices);
}

std::uint64_t fingerprint_of(const schedule& plan) {
  std::uint64_t hash = 14695981039346656037u; // FNV-1a, on whole numbers.
  const auto add = [&](std::uint64_t x) { hash = (hash ^ x) * 1099511628211u; };
  for (const std::uint64_t x : {plan.devices, plan.staging, plan.chunks})
    add(x);
  for (const auto& step : plan.steps)
    add(((std::uint64_t{step.from} << 32 | step.to) * 31 + step.chunk) * 2
        + static_cast<std::uint64_t>(step.kind));
  return hash;
}

std::vector<std::vector<std::uint32_t>> dependencies(const schedule& plan) {
  struct cell { // One chunk of one place.
    std::optional<std::uint32_t> writer;
    std::vector<std::uint32_t> readers; // Since the last write.
  };
  const std::size_t places = plan.devices + plan.staging;
  std::vector<cell> cells(places * plan.chunks);
  std::vector<std::vector<std::uint32_t>> all(plan.steps.size());
  for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
    const auto& step = plan.steps[i];
    assert(step.from < places && step.to < places && step.chunk < plan.chunks);
    cell& source = cells[std::size_t{step.from} * plan.chunks + step.chunk];
    cell& target = cells[std::size_t{step.to} * plan.chunks + step.chunk];
    auto& before = all[i];
    before = target.readers;
    for (const auto& writer : {source.writer, target.writer})
      if (writer)
        before.push_back(*writer);
    std::ranges::sort(before);
    before.erase(std::unique(before.begin(), before.end()), before.end());
    source.readers.push_back(i);
    target.writer = i;
    target.readers.clear();
  }
  return all;
}

} // namespace troupe::kernels
