// The launcher's member of the cluster: says which processes died, hears how the job stands.
#pragma once

#include "actors/kv.hpp"
#include "actors/roles/observer/observer_mailbox.hpp"

#include "caf/actor_system.hpp"

#include <memory>

namespace troupe {

/// A member. It reports the board's observer_status at once when it is sent `tick_atom`, else every
/// report_interval, and tells `values`, if not null, of each new view.
using observer_handle = member_handle::extend<caf::reacts_to<tick_atom>>;

observer_handle spawn_observer(caf::actor_system& system, member_id self, std::uint64_t job,
                               std::shared_ptr<observer_mailbox> board, router_handle values,
                               coordinator_connector connect);

} // namespace troupe
