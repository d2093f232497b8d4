#include "cli/sim/job_values.hpp"

#include "cli/sim/world.hpp"

#include <algorithm>
#include <string>

namespace troupe::sim {

std::vector<batch_id> marks_of(const job_spec& job, const push_request& push) {
  std::vector<batch_id> all;
  for (const step_header& step : push.steps())
    for (const table_id table : push.tables)
      all.push_back(mark_of(job, step.batch, table));
  return all;
}

void value_image::apply(const job_spec& job,
                        const std::vector<std::shared_ptr<const push_request>>& pushes) {
  std::uint64_t brought = 0;
  for (const auto& push : pushes)
    brought += static_cast<std::uint64_t>(push->gradient_norm);
  std::uint64_t expected = 0;
  for (const auto& push : pushes)
    for (const batch_id mark : marks_of(job, *push)) {
      if (!applied.insert(mark))
        throw violation("exactly once: batch " + std::to_string(mark.value / job.tables.size())
                        + " is applied twice");
      expected += static_cast<std::uint64_t>(gradient_of(mark));
      digest = (digest ^ (mark.value + 1)) * 0x100000001b3ull;
    }
  require(brought == expected, "sums: an entry brings other gradients than those of its batches");
  sum += brought;
}

bool value_image::adds_up() const {
  std::uint64_t expected = 0;
  for (std::uint64_t mark = 0; mark < applied.end().value; ++mark)
    if (applied.contains({mark}))
      expected += static_cast<std::uint64_t>(gradient_of({mark}));
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
    const auto is_in_base = [&](const auto& push) {
      return std::ranges::all_of(marks_of(job, *push),
                                 [&](batch_id mark) { return base.applied.contains(mark); });
    };
    if (std::ranges::all_of(entry.pushes, is_in_base))
      continue;
    shard_effects effects;
    state.append(std::move(header));
    state.commit(effects);
    base.apply(job, entry.pushes);
    state.applied(effects);
  }
  base.partitions = state.partitions();
  return base;
}

} // namespace troupe::sim
