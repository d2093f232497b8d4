// Plays all members of a job as actors of one process.
#pragma once

#include "actors/graph/launch/play.hpp"
#include "actors/graph/launch/simulation.hpp"
#include "actors/graph/plan.hpp"
#include "base/notice.hpp"

#include "caf/actor_system.hpp"

#include <functional>
#include <vector>

namespace troupe {

/// The members of a job. Lifetime: its actors end with the job, or with the destructor.
class local_cluster {
public:
  /// Starts all members. `tell`: takes the log lines of all as notices, on any thread; may be null.
  /// `simulated`: runs the actors, and outlives this; null: threads run them. Requires: with
  /// `simulated` no checkpoints, and not hogwild.
  /// Errors: io_failed, in_use from the coordinator's store.
  static result<local_cluster> start(caf::actor_system& system, const plan& what,
                                     const notice_sink& tell, simulation* simulated = nullptr);
  local_cluster(local_cluster&&) = default;
  local_cluster& operator=(local_cluster&&) = delete;
  ~local_cluster();

  coordinator_connector coordinator() const;
  /// Returns the store for one more client.
  store_client client() const;

private:
  local_cluster() = default;

  /// Takes the actors of a member, which the destructor ends. Returns the member.
  played take(played member);

  simulation* simulation_ = nullptr;
  std::size_t threads_before_ = 0; ///< Those of actors that were there before the members.
  coordinator_service coordinator_;
  std::function<store_client()> client_;
  std::vector<caf::actor> actors_;
};

} // namespace troupe
