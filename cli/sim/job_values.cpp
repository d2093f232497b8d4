#include "cli/sim/job_values.hpp"

#include "cli/sim/world.hpp"

#include <algorithm>
#include <string>

namespace troupe::sim {

void value_image::apply(const std::vector<std::shared_ptr<const push_request>>& pushes) {
  std::uint64_t brought = 0;
  for (const auto& push : pushes)
    brought += static_cast<std::uint64_t>(push->gradient_norm);
  std::uint64_t expected = 0;
  const auto mark = [&](const step_header& step) {
    if (!applied.insert(step.batch))
      throw violation("exactly once: batch " + std::to_string(step.batch.value)
                      + " is applied twice");
    expected += static_cast<std::uint64_t>(gradient_of(step.batch));
    digest = (digest ^ (step.batch.value + 1)) * 0x100000001b3ull;
  };
  for (const auto& push : pushes)
    std::ranges::for_each(push->steps(), mark);
  require(brought == expected, "sums: an entry brings other gradients than those of its batches");
  sum += brought;
}

bool value_image::adds_up() const {
  std::uint64_t expected = 0;
  for (std::uint64_t batch = 0; batch < applied.end().value; ++batch)
    if (applied.contains({batch}))
      expected += static_cast<std::uint64_t>(gradient_of({batch}));
  return expected == sum;
}

std::uint64_t value_image::version() const {
  std::uint64_t newest = 0;
  for (const auto& each : partitions)
    newest = std::max(newest, each.version);
  return newest;
}

std::shared_ptr<const push_request>
sum_of(std::span<const std::shared_ptr<const push_request>> pushes) {
  auto sum = std::make_shared<push_request>();
  sum->step = pushes.front()->step;
  sum->tables = pushes.front()->tables;
  for (const auto& push : pushes) {
    sum->gradient_norm += push->gradient_norm;
    if (push != pushes.front())
      sum->others.push_back(push->step);
  }
  return sum;
}

value_image replayed(const job_spec& job, value_image base, const std::vector<log_entry>& log) {
  shard state{job, {}, base.partitions};
  for (const auto& entry : log) {
    auto header = header_of(entry);
    if (std::ranges::all_of(header.steps,
                            [&](const auto& step) { return base.applied.contains(step.batch); }))
      continue;
    shard_effects effects;
    state.append(std::move(header));
    state.commit(effects);
    base.apply(entry.pushes);
    state.applied(effects);
  }
  base.partitions = state.partitions();
  return base;
}

} // namespace troupe::sim
