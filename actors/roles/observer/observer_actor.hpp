// Runs the launcher's member of the cluster, which reports dead processes and receives the state of
// the job.
#pragma once

#include "actors/kv.hpp"
#include "actors/roles/observer/observer_mailbox.hpp"

#include "caf/actor_system.hpp"

#include <memory>

namespace troupe {

/// A member that reports the observer_status of `mailbox`, at once on `tick_atom` and otherwise
/// every report_interval. It sends each new view to `views` unless that is null.
using observer_handle = member_handle::extend<caf::reacts_to<tick_atom>>;

observer_handle spawn_observer(caf::actor_system& system, member_id self, std::uint64_t job,
                               std::shared_ptr<observer_mailbox> mailbox, view_sink views,
                               coordinator_connector connect);

} // namespace troupe
