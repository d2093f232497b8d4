#include "actors/training/gradient_actor.hpp"

#include "actors/exception_text.hpp"
#include "actors/lane.hpp"
#include "actors/training/sampler.hpp"
#include "actors/training/touched_rows.hpp"
#include "kernels/flush_denormals.hpp"
#include "kernels/vector_ops.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <cmath>
#include <optional>
#include <utility>

namespace troupe {

namespace {

/// Turns of other actors between two gradients: those that carry out this worker's step.
constexpr std::size_t turns_max = 16;

struct gradient_state {
  gradient_state() = default;

  void init(job_spec what, const trainer_factory& make) {
    job = std::move(what);
    batches.emplace(job);
    for (const auto& table : job.tables)
      any_clip = any_clip || table.optimizer.clip_norm > 0.0f;
    try {
      model = make();
      if (!model)
        failed = "the graph's trainer factory made no trainer";
    } catch (...) {
      failed = exception_text();
    }
  }

  keys_outcome keys(const keys_task& task) {
    keys_outcome outcome{task.number, failed, {}};
    if (!failed.empty())
      return outcome;
    try {
      const auto work = batches->at(task.batch);
      outcome.rows = touched_rows(job, [&](key_lists touched) { model->keys(work, touched); });
    } catch (...) {
      outcome.failed = exception_text();
    }
    return outcome;
  }

  gradient_outcome compute(const gradient_task& task) {
    gradient_outcome outcome;
    outcome.number = task.number;
    outcome.base_version = task.version;
    outcome.failed = failed;
    if (!failed.empty())
      return outcome;
    std::vector<std::shared_ptr<float>> gradients;
    std::vector<std::span<float>> gradient_spans;
    std::vector<std::span<const float>> parameter_spans;
    const auto keys = keys_by_table(job, task.rows);
    for (std::size_t i = 0; i < job.tables.size(); ++i) {
      const auto size = job.tables[i].size() + keys[i].size() * job.tables[i].width;
      parameter_spans.emplace_back(task.parameters[i].get(), size);
      gradients.push_back(pool.floats(size));
      gradient_spans.emplace_back(gradients.back().get(), size);
    }
    try {
      auto work = batches->at(task.batch);
      work.keys = keys;
      outcome.samples = work.samples.size();
      const kernels::flush_denormals guard;
      outcome.loss = model->gradient(work, parameter_spans, gradient_spans);
    } catch (...) {
      outcome.failed = exception_text();
      return outcome;
    }
    double squares = 0; // Not finite where an element is not.
    for (std::uint32_t i = 0; i < gradients.size(); ++i) {
      const std::span<const float> gradient = gradient_spans[i];
      if (any_clip)
        squares += kernels::squared_norm(gradient);
      else
        outcome.finite = outcome.finite && kernels::first_non_finite(gradient) == gradient.size();
      if (!job.tables[i].is_sparse())
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

  job_spec job;
  std::unique_ptr<trainer> model;
  std::string failed; ///< Why there is no model.
  std::optional<sampler> batches;
  buffer_pool pool;
  bool any_clip = false;
  std::optional<lane> own_lane;

  static inline const char* name = "gradient";
};

static_assert(!std::is_constructible_v<gradient_state, caf::event_based_actor*>);

template <class Outcome>
void answer(gradient_actor::stateful_pointer<gradient_state> self, Outcome outcome) {
  const auto asker = caf::actor_cast<gradient_receiver>(self->current_sender());
  auto& lane = self->state.own_lane;
  if (!lane) {
    self->send(asker, std::move(outcome));
    return;
  }
  lane->send(asker, std::move(outcome));
  lane->run();
}

gradient_actor::behavior_type run(gradient_actor::stateful_pointer<gradient_state> self,
                                  job_spec job, const trainer_factory& make,
                                  gradient_thread where) {
  auto& state = self->state;
  state.init(std::move(job), make);
  if (where == gradient_thread::lane)
    state.own_lane.emplace(self->system(), turns_max);
  return {
    [self, &state](const gradient_task& task) { answer(self, state.compute(task)); },
    [self, &state](const keys_task& task) { answer(self, state.keys(task)); },
  };
}

} // namespace

gradient_actor spawn_gradient_actor(caf::actor_system& system, job_spec job, trainer_factory make,
                                    gradient_thread where) {
  if (where == gradient_thread::none)
    return system.spawn(run, std::move(job), std::move(make), where);
  return system.spawn<caf::detached>(run, std::move(job), std::move(make), where);
}

} // namespace troupe
