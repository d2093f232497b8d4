// Names the processes of a job.
#pragma once

#include "serialization/ids.hpp"

#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// One process of the job, in any incarnation.
struct process_name {
  troupe::role role = {};
  std::uint32_t index = 0;

  auto operator<=>(const process_name&) const = default;
};

inline process_name process_of(const member_id& who) { return {who.role, who.index}; }
inline process_name process_of(server_id who) { return process_of(member_of(who)); }
inline process_name process_of(worker_id who) { return process_of(member_of(who)); }

/// The nodes of a graph, and the role of their processes: "worker", "server" or "launcher".
using node_roles = std::vector<std::pair<std::string, std::string>>;

/// Returns "server 0", "worker 3", "launcher 0"; coordinator 0 is "coordinator", a standby
/// "coordinator 1".
std::string to_string(const process_name& who);

/// Returns "server 3, worker 1 (and 4 more)"; names at most eight.
std::string list_of(const std::vector<std::string>& names);

} // namespace troupe
