// A backend whose job has a coordinator: an observer hears its news, and an evaluator pulls the
// parameters. Processes, threads and virtual time share it.
#pragma once

#include "actors/graph/launch/actor_config.hpp"
#include "actors/graph/launch/backend.hpp"
#include "actors/graph/launch/inbox.hpp"
#include "actors/roles/observer/evaluator_actor.hpp"
#include "actors/roles/observer/observer_actor.hpp"
#include "actors/roles/observer/observer_mailbox.hpp"
#include "actors/roles/worker/router_actor.hpp"

#include "caf/actor_system.hpp"

#include <memory>

namespace troupe {

class actor_backend : public backend {
public:
  void describe(session_options& into) const override;
  std::optional<job_update> status(const observer_status& report) final;
  void evaluate(std::uint64_t epoch) final;

protected:
  /// `threads`: of the actor system; 0: the backend runs the actors.
  actor_backend(const plan& what, std::size_t threads);

  /// Begins to observe. `self`: the observer. `evaluates`: whether the parameters of `store` are
  /// evaluated. `own_thread`: on a thread of the evaluator's own.
  void observe(const member_id& self, store_client store, coordinator_connector connect,
               bool evaluates, bool own_thread = true);
  /// Ends the observer and the evaluator. The destructor of each backend calls it first.
  void leave();

  const plan& what_;
  own_actor_system own_system_;
  caf::actor_system& system_;
  std::shared_ptr<observer_mailbox> mailbox_ = std::make_shared<observer_mailbox>();
  inbox<evaluation_message> evaluations_;

private:
  store_client store_;
  observer_handle observer_;
  evaluator_handle evaluator_;
  bool has_own_thread_ = true;
};

/// Returns the identity of a launcher's observer, with an incarnation of its own.
member_id new_observer();

} // namespace troupe
