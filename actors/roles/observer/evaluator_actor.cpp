#include "actors/roles/observer/evaluator_actor.hpp"

#include "actors/training/touched_rows.hpp"
#include "base/exception_text.hpp"

#include "caf/scoped_actor.hpp"
#include "caf/send.hpp"
#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <cstring>
#include <span>
#include <utility>

namespace troupe {

namespace {

// Long enough to replace a server during a pull.
constexpr std::chrono::minutes pull_timeout{2};

struct evaluator_state {
  evaluator_state() = default;

  /// Returns a pull request for the dense tables and for the sparse tables' rows that the evaluator
  /// needs.
  result<pull_request> question() {
    pull_request everything;
    everything.latest = true;
    for (std::uint32_t i = 0; i < job.tables.size(); ++i)
      if (!job.tables[i].is_sparse())
        everything.ranges.push_back({{i}, 0, job.tables[i].size()});
    try {
      if (make && !model)
        model = make();
      if (make && !model)
        return {errc::invalid_argument, "the graph's evaluator factory made no evaluator"};
      if (model)
        everything.rows = touched_rows(job, [&](key_lists touched) { model->keys(touched); });
    } catch (...) {
      return {errc::invalid_argument, exception_text()};
    }
    return everything;
  }

  evaluation_message evaluate(std::uint64_t number, const pull_reply& answer) {
    evaluation_message evaluation;
    evaluation.number = number;
    std::vector<std::span<const float>> spans;
    for (const auto& table : job.tables)
      evaluation.parameters.emplace_back(table.size());
    for (const auto& x : answer.pieces)
      std::memcpy(evaluation.parameters[x.where.table.value].data() + x.where.first, x.values.get(),
                  x.where.count * sizeof(float));
    for (const auto& x : answer.rows)
      evaluation.parameters[x.where.table.value].assign(x.values.get(),
                                                        x.values.get() + x.where.floats());
    for (const auto& table : evaluation.parameters)
      spans.emplace_back(table);
    try {
      if (model)
        evaluation.found = model->evaluate(spans);
    } catch (...) {
      evaluation.failed = exception_text();
    }
    return evaluation;
  }

  job_spec job;
  kv source;
  evaluator_factory make;
  std::unique_ptr<evaluator> model;
  std::function<void(evaluation_message)> done;

  static inline const char* name = "evaluator";
};

static_assert(!std::is_constructible_v<evaluator_state, caf::event_based_actor*>);

evaluator_handle::behavior_type
run_evaluator(evaluator_handle::stateful_pointer<evaluator_state> self, job_spec job, kv source,
              evaluator_factory make, std::function<void(evaluation_message)> done) {
  auto& state = self->state;
  state.job = std::move(job);
  state.source = std::move(source);
  state.make = std::move(make);
  state.done = std::move(done);
  return {
    [self, &state](evaluate_atom, std::uint64_t number) {
      auto everything = state.question();
      if (!everything) {
        state.done({number, std::nullopt, {}, everything.error().text});
        return;
      }
      self->request(state.source, pull_timeout, request{{}, *std::move(everything)})
        .then([&state,
               number](const reply& answer) { state.done(state.evaluate(number, *answer.pulled)); },
              [&state, number](const caf::error& why) {
                state.done({number, std::nullopt, {}, from_caf(why).text});
              });
    },
  };
}

} // namespace

evaluator_handle spawn_evaluator(caf::actor_system& system, job_spec job, kv values,
                                 evaluator_factory make,
                                 std::function<void(evaluation_message)> done, bool own_thread) {
  if (!own_thread)
    return system.spawn(run_evaluator, std::move(job), std::move(values), std::move(make),
                        std::move(done));
  return system.spawn<caf::detached>(run_evaluator, std::move(job), std::move(values),
                                     std::move(make), std::move(done));
}

void end_evaluator(caf::actor_system& system, const evaluator_handle& evaluator) {
  caf::anon_send_exit(evaluator, caf::exit_reason::user_shutdown);
  caf::scoped_actor self{system};
  self->wait_for(evaluator);
  system.clock().cancel_timeouts(caf::actor_cast<caf::abstract_actor*>(evaluator));
}

} // namespace troupe
