#include "actors/training/evaluation_computer.hpp"

#include "base/exception_text.hpp"

#include <cstring>
#include <span>
#include <utility>

namespace troupe {

std::vector<std::vector<float>> arrays_of(const job_spec& job, const pull_reply& answer) {
  std::vector<std::vector<float>> all;
  for (const auto& table : job.tables)
    all.emplace_back(table.size());
  for (const auto& x : answer.pieces)
    std::memcpy(all[x.where.table.value].data() + x.where.first, x.values.get(),
                x.where.count * sizeof(float));
  for (const auto& x : answer.rows)
    all[x.where.table.value].assign(x.values.get(), x.values.get() + x.where.floats());
  return all;
}

void evaluate_with(evaluators& nodes, evaluation_message& into) {
  const std::vector<std::span<const float>> spans(into.parameters.begin(), into.parameters.end());
  try {
    if (!nodes.is_empty())
      into.found = nodes.evaluate(spans);
  } catch (...) {
    into.failed = exception_failure();
  }
}

evaluation_computer::evaluation_computer(job_spec job, std::vector<named_evaluator> nodes)
    : job_(std::move(job)), nodes_(std::move(nodes)) {}

result<pull_request> evaluation_computer::question() {
  pull_request everything;
  everything.latest = true;
  for (std::uint32_t i = 0; i < job_.tables.size(); ++i)
    if (!job_.tables[i].is_sparse())
      everything.ranges.push_back({{i}, 0, job_.tables[i].size()});
  try {
    if (!nodes_.is_empty())
      everything.rows = nodes_.rows(job_);
  } catch (...) {
    return exception_failure();
  }
  return everything;
}

evaluation_message evaluation_computer::evaluate(std::uint64_t number, const pull_reply& answer) {
  evaluation_message made;
  made.number = number;
  made.parameters = arrays_of(job_, answer);
  evaluate_with(nodes_, made);
  return made;
}

} // namespace troupe
