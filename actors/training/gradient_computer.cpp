#include "actors/training/gradient_computer.hpp"

#include "actors/training/touched_rows.hpp"
#include "base/exception_text.hpp"
#include "kernels/flush_denormals.hpp"
#include "kernels/vector_ops.hpp"

#include <cmath>
#include <span>
#include <utility>

namespace troupe {

namespace {

/// Sets norm and finite; drops a gradient that is not finite.
void classify(double squares, gradient_outcome& outcome) {
  outcome.norm = static_cast<float>(std::sqrt(squares));
  outcome.finite = outcome.finite && std::isfinite(outcome.norm);
  if (outcome.finite)
    return;
  outcome.pieces.clear();
  outcome.rows.clear();
  outcome.on_device.reset();
  outcome.norm = 0;
}

} // namespace

gradient_outcome failed_outcome(std::uint64_t number, failure why) {
  gradient_outcome outcome;
  outcome.number = number;
  outcome.failed = std::move(why);
  return outcome;
}

gradient_computer::gradient_computer(job_spec job, const trainer_factory& make, bool keep_on_device)
    : job_(std::move(job)), batches_(job_),
      keep_on_device_(keep_on_device && !any_sparse(job_) && !any_frozen(job_)) {
  for (const auto& table : job_.tables)
    any_clip_ = any_clip_ || table.optimizer.clip_norm > 0.0f;
  try {
    model_ = make();
    if (!model_)
      failed_ = failure{errc::job_failed, "the graph's trainer factory made no trainer"};
  } catch (...) {
    failed_ = exception_failure();
  }
}

keys_outcome gradient_computer::keys(const keys_task& task) {
  keys_outcome outcome{task.number, failed_, {}};
  if (failed_)
    return outcome;
  try {
    const auto work = batches_.at(task.batch);
    outcome.rows = touched_rows(job_, [&](key_lists touched) { model_->keys(work, touched); });
  } catch (...) {
    outcome.failed = exception_failure();
  }
  return outcome;
}

gradient_outcome gradient_computer::compute(const gradient_task& task,
                                            const gradient_listener& early) {
  gradient_outcome outcome;
  outcome.number = task.number;
  outcome.base_version = task.version;
  outcome.failed = failed_;
  if (failed_)
    return outcome;
  std::vector<std::shared_ptr<float>> gradients;
  std::vector<std::span<float>> gradient_spans;
  std::vector<std::span<const float>> parameter_spans;
  const auto keys = keys_by_table(job_, task.rows);
  for (std::size_t i = 0; i < job_.tables.size(); ++i)
    parameter_spans.emplace_back(task.parameters[i].get(),
                                 job_.tables[i].size() + keys[i].size() * job_.tables[i].width);
  std::vector<bool> checked(job_.tables.size());
  const auto is_finite = [](std::span<const float> gradient) {
    return kernels::first_non_finite(gradient) == gradient.size();
  };
  try {
    auto work = batches_.at(task.batch);
    work.keys = keys;
    if (early)
      work.on_ready = [&](std::size_t table) {
        if (checked.at(table) || job_.tables[table].frozen)
          return;
        checked[table] = true;
        outcome.finite = outcome.finite && is_finite(gradient_spans[table]);
        if (outcome.finite)
          early(static_cast<std::uint32_t>(table), gradient_spans[table]);
      };
    outcome.samples = work.samples.size();
    const kernels::flush_denormals guard;
    if (keep_on_device_ && keep_on_device(work, parameter_spans, task.identity, outcome))
      return outcome;
    for (std::size_t i = 0; i < parameter_spans.size(); ++i) {
      const auto size = job_.tables[i].frozen ? 0 : parameter_spans[i].size();
      gradients.push_back(size > 0 ? pool_.floats(size) : nullptr);
      gradient_spans.emplace_back(gradients.back().get(), size);
    }
    outcome.loss = model_->gradient(work, parameter_spans, gradient_spans);
  } catch (...) {
    outcome.failed = exception_failure();
    return outcome;
  }
  double squares = 0; // Not finite if an element is not.
  for (std::uint32_t i = 0; i < gradients.size(); ++i) {
    const std::span<const float> gradient = gradient_spans[i];
    if (job_.tables[i].frozen)
      continue;
    if (any_clip_)
      squares += kernels::squared_norm(gradient);
    else if (!checked[i])
      outcome.finite = outcome.finite && is_finite(gradient);
    if (!job_.tables[i].is_sparse())
      outcome.pieces.push_back({{{i}, 0, gradient.size()}, std::move(gradients[i])});
  }
  for (const auto& x : task.rows)
    outcome.rows.push_back({x, std::move(gradients[x.table.value])});
  classify(squares, outcome);
  return outcome;
}

bool gradient_computer::keep_on_device(const batch& work, const_tensors parameters,
                                       const value_identity& which, gradient_outcome& outcome) {
  auto left = model_->gradient_on_device(work, parameters, which);
  if (!left) {
    keep_on_device_ = false;
    return false;
  }
  outcome.loss = left->loss;
  outcome.on_device = std::move(left->values);
  for (std::uint32_t i = 0; i < parameters.size(); ++i)
    outcome.pieces.push_back({{{i}, 0, parameters[i].size()}, nullptr});
  outcome.finite = std::isfinite(left->squares);
  classify(any_clip_ ? left->squares : 0.0, outcome);
  return true;
}

} // namespace troupe
