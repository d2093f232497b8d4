// Carries the lanes of one member over links: the shell of its port room.
#pragma once

#include "actors/kv.hpp"
#include "actors/roles/links/link_dispatcher.hpp"
#include "actors/training/port_room.hpp"

#include "caf/actor_system.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace troupe {

/// Makes links to other members, and uses them. Its functions are thread-safe and do not block.
struct lane_network {
  /// Begins to connect. The owner hears `opened` or `lost`, after this call.
  std::function<link_id(const member_address&, const detail::link_owner& owner)> connect{};
  std::function<void(link_id, const message&)> send{};
  std::function<void(link_id)> close{};
};

/// Owns the links of a member's lanes, and takes the members that listen.
///
/// Lifetime: until it is told to exit.
using channel_handle = detail::link_owner::extend<caf::reacts_to<std::vector<member_address>>,
                                                  caf::reacts_to<tick_atom>>;

/// Spawns the owner of the links of `room`, and begins the room. `around`: without a clock.
channel_handle spawn_channels(caf::actor_system& system, const std::shared_ptr<port_room>& room,
                              lane_network network, port_surroundings around);

} // namespace troupe
