// Connects a member that has ports with the links that carry its lanes.
#pragma once

#include "actors/kv.hpp"
#include "actors/training/port_room.hpp"

#include "caf/send.hpp"
#include "caf/typed_actor.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace troupe {

/// Begins to carry the lanes of a room, which it gives these surroundings and a clock. The actor
/// that it returns takes the members that listen. It lives until it is told to exit.
using lane_carrier =
  std::function<listener_sink(const std::shared_ptr<port_room>&, port_surroundings)>;

/// The ports of one member. `room` is null for a member without ports.
struct lane_options {
  std::shared_ptr<port_room> room{};
  lane_carrier carry{};
  std::string node{};    ///< The member's node, for the names of its ports in reports.
  std::string address{}; ///< Where its lanes are reached; empty: no channel leads to it.
  notice_sink waits{};   ///< Takes notices of lanes that wait for credit.
  log_sink log{};        ///< Takes lines on them, where the process has a log.
};

/// Begins the lanes of a member, whose actor is `self`. They end with it. `body`: the actor that
/// runs the owner's code; it is told to deliver. `self` takes failures. `around`: the surroundings
/// that the member alone knows.
template <class Self, class Body>
listener_sink begin_lanes(Self* self, const lane_options& lanes, const Body& body,
                          port_surroundings around) {
  using failure_sink = caf::typed_actor<caf::reacts_to<failure>>;
  // Weak, as the room may outlive its owner: an actor that is not destroyed keeps its thread.
  around.wake = [to = caf::actor_cast<caf::weak_actor_ptr>(body)] {
    if (const auto there = to.lock())
      caf::anon_send(caf::actor_cast<Body>(there), deliver_atom_v);
  };
  around.fail = [me = caf::actor_cast<caf::weak_actor_ptr>(self)](const failure& why) {
    if (const auto there = me.lock())
      caf::anon_send(caf::actor_cast<failure_sink>(there), why);
  };
  around.waits = lanes.waits;
  around.log = lanes.log;
  const auto carrying = lanes.carry(lanes.room, std::move(around));
  self->attach_functor(
    [carrying] { caf::anon_send_exit(carrying, caf::exit_reason::user_shutdown); });
  return carrying;
}

} // namespace troupe
