// Finds processes of a host that hang: they exist and were members, but the coordinator counts them
// no more. A plain value.
#pragma once

#include "actors/protocol/process_name.hpp"
#include "base/clock.hpp"
#include "serialization/messages.hpp"

#include <map>
#include <set>
#include <vector>

namespace troupe {

/// A process that was declared lost and can still run is told so and ends by itself. A process that
/// hangs keeps its place from a successor until it is killed.
class hung_processes {
public:
  /// Time for a process that was declared lost to end by itself, and for a member to come to a new
  /// coordinator.
  static constexpr std::chrono::seconds patience{5};

  /// Returns processes that hang, each once. `running`: the processes of this host. `members`: all
  /// members that the coordinator counts.
  std::vector<process_name> find(const std::map<process_name, incarnation_id>& running,
                                 const std::vector<member_status>& members, time_point now);

private:
  std::set<member_id> were_members_;
  std::map<member_id, time_point> given_up_since_;
};

} // namespace troupe
