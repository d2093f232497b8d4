// Connects a member that has ports with the links that carry its lanes.
#pragma once

#include "actors/kv.hpp"
#include "actors/training/port_room.hpp"

#include <functional>
#include <memory>
#include <string>

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

} // namespace troupe
