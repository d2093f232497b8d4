// Runs all roles of a job as actors of one process.
#pragma once

#include "actors/graph/launch/simulation.hpp"
#include "actors/graph/plan.hpp"
#include "actors/roles/coordinator/coordinator_actor.hpp"
#include "actors/roles/server/hogwild.hpp"
#include "actors/roles/server/server_actor.hpp"
#include "actors/roles/worker/router_actor.hpp"
#include "base/notice.hpp"

#include "caf/actor_system.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace troupe {

/// The roles of a job. Lifetime: its actors end with the job, or with the destructor.
class local_cluster {
public:
  /// Starts all roles. `checkpoints`: nullopt: the job keeps none. `tell`: takes the log
  /// lines of all members as notices, on any thread; may be null. `simulated`: runs the actors, and
  /// outlives this; null: threads run them. Requires: with `simulated` no checkpoints, and not
  /// hogwild.
  /// Errors: io_failed, in_use from the coordinator's store.
  static result<local_cluster> start(caf::actor_system& system, const plan& what,
                                     std::optional<std::filesystem::path> checkpoints,
                                     notice_sink tell, simulation* simulated = nullptr);
  local_cluster(local_cluster&&) = default;
  local_cluster& operator=(local_cluster&&) = delete;
  ~local_cluster();

  coordinator_connector coordinator() const;
  /// Returns the store for one more client. `compresses`: the client sends values that codecs
  /// packed.
  store_client client(caf::actor_system& system, bool compresses = false) const;

private:
  class server_list;

  local_cluster() = default;

  job_spec job_;
  router_options routing_;
  simulation* simulation_ = nullptr;
  coordinator_service coordinator_;
  std::shared_ptr<server_list> servers_;
  std::vector<caf::actor> actors_;        ///< All actors; the destructor ends them.
  std::shared_ptr<shared_tables> shared_; ///< hogwild only.
};

} // namespace troupe
