// Names the processes that a launcher keeps running, and the rules for each.
#pragma once

#include "actors/protocol/process_name.hpp"
#include "actors/protocol/session/supervision.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// One process of this host.
struct process_plan {
  process_name who;
  std::string node{}; ///< The node of the graph whose processes stand in for each other.
  supervision on_death{};
  /// The workers of a process that has several, `who.index` first, in ascending order. Each has an
  /// incarnation: the process's, plus the distance of its index from the first.
  std::vector<std::uint32_t> workers{};
};

/// A SIGKILL to a process, at time `after` of the training.
struct kill_plan {
  process_name who;
  std::chrono::milliseconds after{0};
};

} // namespace troupe
