#include "actors/graph/launch/actor_backend.hpp"

#include "base/system/draw_random.hpp"

#include "caf/send.hpp"

#include <utility>

namespace troupe {

actor_backend::actor_backend(const plan& what, std::size_t threads)
    : what_(what), own_system_(make_actor_system(threads)), system_(*own_system_.system) {}

void actor_backend::observe(const member_id& self, store_client store,
                            coordinator_connector connect, bool evaluates, bool own_thread) {
  store_ = std::move(store);
  has_own_thread_ = own_thread;
  observer_ = spawn_observer(system_, self, fingerprint(what_.job), mailbox_, store_.views,
                             std::move(connect));
  if (evaluates)
    evaluator_ = spawn_evaluator(
      system_, what_.job, store_.values, what_.evaluators,
      [results = evaluations_](evaluation_message x) { results.put(std::move(x)); }, own_thread);
}

void actor_backend::leave() {
  if (evaluator_ && has_own_thread_)
    end_evaluator(system_, evaluator_);
  else if (evaluator_)
    caf::anon_send_exit(evaluator_, caf::exit_reason::user_shutdown);
  for (const auto& x :
       {caf::actor_cast<caf::actor>(observer_), caf::actor_cast<caf::actor>(store_.values)})
    if (x)
      caf::anon_send_exit(x, caf::exit_reason::user_shutdown);
  evaluator_ = nullptr;
  observer_ = nullptr;
  store_ = {};
  // Idle actors have no work left; waiting for them would only risk a hang.
  system_.await_actors_before_shutdown(false);
}

void actor_backend::describe(session_options& into) const {
  into.evaluates =
    what_.evaluators.empty() ? evaluated_parameters::final : evaluated_parameters::epochs;
}

std::optional<job_update> actor_backend::status(const observer_status& report) {
  if (report != mailbox_->report()) {
    mailbox_->update([&](observer_status& mine) { mine = report; });
    caf::anon_send(observer_, tick_atom_v);
  }
  return mailbox_->latest();
}

void actor_backend::evaluate(std::uint64_t epoch) {
  caf::anon_send(evaluator_, evaluate_atom_v, epoch);
}

member_id new_observer() { return {role::observer, 0, {draw_random()}}; }

} // namespace troupe
