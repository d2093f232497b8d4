#include "actors/training/gradient_computer.hpp"

#include "actors/exception_text.hpp"
#include "actors/training/touched_rows.hpp"
#include "kernels/flush_denormals.hpp"
#include "kernels/vector_ops.hpp"

#include <cmath>
#include <span>
#include <utility>

namespace troupe {

gradient_computer::gradient_computer(job_spec job, const trainer_factory& make)
    : job_(std::move(job)), batches_(job_) {
  for (const auto& table : job_.tables)
    any_clip_ = any_clip_ || table.optimizer.clip_norm > 0.0f;
  try {
    model_ = make();
    if (!model_)
      failed_ = "the graph's trainer factory made no trainer";
  } catch (...) {
    failed_ = exception_text();
  }
}

keys_outcome gradient_computer::keys(const keys_task& task) {
  keys_outcome outcome{task.number, failed_, {}};
  if (!failed_.empty())
    return outcome;
  try {
    const auto work = batches_.at(task.batch);
    outcome.rows = touched_rows(job_, [&](key_lists touched) { model_->keys(work, touched); });
  } catch (...) {
    outcome.failed = exception_text();
  }
  return outcome;
}

gradient_outcome gradient_computer::compute(const gradient_task& task,
                                            const gradient_listener& early) {
  gradient_outcome outcome;
  outcome.number = task.number;
  outcome.base_version = task.version;
  outcome.failed = failed_;
  if (!failed_.empty())
    return outcome;
  std::vector<std::shared_ptr<float>> gradients;
  std::vector<std::span<float>> gradient_spans;
  std::vector<std::span<const float>> parameter_spans;
  const auto keys = keys_by_table(job_, task.rows);
  for (std::size_t i = 0; i < job_.tables.size(); ++i) {
    const auto size = job_.tables[i].size() + keys[i].size() * job_.tables[i].width;
    parameter_spans.emplace_back(task.parameters[i].get(), size);
    gradients.push_back(pool_.floats(size));
    gradient_spans.emplace_back(gradients.back().get(), size);
  }
  std::vector<bool> checked(gradients.size());
  const auto is_finite = [](std::span<const float> gradient) {
    return kernels::first_non_finite(gradient) == gradient.size();
  };
  try {
    auto work = batches_.at(task.batch);
    work.keys = keys;
    if (early)
      work.on_ready = [&](std::size_t table) {
        if (checked.at(table))
          return;
        checked[table] = true;
        outcome.finite = outcome.finite && is_finite(gradient_spans[table]);
        if (outcome.finite)
          early(static_cast<std::uint32_t>(table), gradient_spans[table]);
      };
    outcome.samples = work.samples.size();
    const kernels::flush_denormals guard;
    outcome.loss = model_->gradient(work, parameter_spans, gradient_spans);
  } catch (...) {
    outcome.failed = exception_text();
    return outcome;
  }
  double squares = 0; // Not finite where an element is not.
  for (std::uint32_t i = 0; i < gradients.size(); ++i) {
    const std::span<const float> gradient = gradient_spans[i];
    if (any_clip_)
      squares += kernels::squared_norm(gradient);
    else if (!checked[i])
      outcome.finite = outcome.finite && is_finite(gradient);
    if (!job_.tables[i].is_sparse())
      outcome.pieces.push_back({{{i}, 0, gradient.size()}, std::move(gradients[i])});
  }
  for (const auto& x : task.rows)
    outcome.rows.push_back({x, std::move(gradients[x.table.value])});
  outcome.norm = static_cast<float>(std::sqrt(squares));
  outcome.finite = outcome.finite && std::isfinite(outcome.norm);
  if (!outcome.finite) {
    outcome.pieces.clear();
    outcome.rows.clear();
    outcome.norm = 0;
  }
  return outcome;
}

} // namespace troupe
