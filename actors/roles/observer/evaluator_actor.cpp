#include "actors/roles/observer/evaluator_actor.hpp"

#include "actors/detached.hpp"
#include "caf/scoped_actor.hpp"
#include "caf/send.hpp"
#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <optional>
#include <utility>

namespace troupe {

namespace {

// Long enough to replace a server during a pull.
constexpr std::chrono::minutes values_timeout{2};

struct evaluator_state {
  evaluator_state() = default;

  std::optional<evaluation_computer> computer;
  kv source;
  std::function<void(evaluation_message)> done;

  static inline const char* name = "evaluator";
};

static_assert(!std::is_constructible_v<evaluator_state, caf::event_based_actor*>);

evaluator_handle::behavior_type
run_evaluator(evaluator_handle::stateful_pointer<evaluator_state> self, job_spec job, kv source,
              std::vector<named_evaluator> nodes, std::function<void(evaluation_message)> done) {
  auto& state = self->state;
  state.computer.emplace(std::move(job), std::move(nodes));
  state.source = std::move(source);
  state.done = std::move(done);
  return {
    [self, &state](evaluate_atom, std::uint64_t number) {
      auto everything = state.computer->question();
      if (!everything) {
        state.done({number, std::nullopt, {}, everything.error()});
        return;
      }
      self->request(state.source, values_timeout, request{{}, *std::move(everything)})
        .then([&state,
               number](const reply& a) { state.done(state.computer->evaluate(number, *a.pulled)); },
              [&state, number](const caf::error& why) {
                state.done({number, std::nullopt, {}, from_caf(why)});
              });
    },
  };
}

} // namespace

evaluator_handle spawn_evaluator(caf::actor_system& system, job_spec job, kv values,
                                 std::vector<named_evaluator> nodes,
                                 std::function<void(evaluation_message)> done, bool own_thread) {
  if (!own_thread)
    return system.spawn(run_evaluator, std::move(job), std::move(values), std::move(nodes),
                        std::move(done));
  return spawn_detached(system, run_evaluator, std::move(job), std::move(values), std::move(nodes),
                        std::move(done));
}

void end_evaluator(caf::actor_system& system, const evaluator_handle& evaluator) {
  caf::anon_send_exit(evaluator, caf::exit_reason::user_shutdown);
  caf::scoped_actor self{system};
  self->wait_for(evaluator);
  system.clock().cancel_timeouts(caf::actor_cast<caf::abstract_actor*>(evaluator));
}

} // namespace troupe
