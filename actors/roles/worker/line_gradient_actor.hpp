// Runs the first part of a line in a worker's process, as its gradient actor.
#pragma once

#include "actors/roles/worker/gradient_actor.hpp"
#include "actors/training/line_part.hpp"
#include "base/log_sink.hpp"

#include "caf/actor_system.hpp"

#include <chrono>
#include <functional>
#include <memory>

namespace troupe {

/// Makes the first part of a line, and connects its ports with the room, on the thread that uses
/// it. May throw.
using line_maker = std::function<std::unique_ptr<line_part>(line_shell&, port_room&)>;

struct line_gradient_options {
  line_maker make;
  std::shared_ptr<port_room> ports;
  /// Returns the time of the next computation in virtual time. May be null.
  std::function<std::chrono::nanoseconds()> slowness{};
  log_sink log{};
};

/// Spawns a gradient actor that computes with a line. It takes no keys_task. `where`: its thread;
/// `inline_executor` counts as `own`.
///
/// Lifetime:  until it is told to exit; a computation is finished first.
gradient_actor spawn_line_gradient_actor(caf::actor_system& system, line_gradient_options options,
                                         gradient_thread where);

} // namespace troupe
