// Which processes of a host hang: they exist, but the coordinator gave them up. A plain value.
#pragma once

#include "actors/process_name.hpp"
#include "base/clock.hpp"
#include "serialization/messages.hpp"

#include <map>
#include <set>
#include <vector>

namespace troupe {

/// A process that is given up and can still act hears so and ends by itself; one that does neither
/// keeps its place from a successor until someone kills it.
class hung_processes {
public:
  /// Time for a process that was given up to end by itself.
  static constexpr std::chrono::seconds patience{5};

  /// Each is named once. `running`: the processes of this host. `members`: all whom the
  /// coordinator counts; not of a job that is gathering, whose members are still to come.
  std::vector<process_name> find(const std::map<process_name, incarnation_id>& running,
                                 const std::vector<member_status>& members, time_point now);

private:
  std::set<member_id> were_members_;
  std::map<member_id, time_point> given_up_since_;
};

} // namespace troupe
