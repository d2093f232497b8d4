// Names the processes of a job.
#pragma once

#include "serialization/ids.hpp"

#include <compare>
#include <cstdint>
#include <string>
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

/// A node of a graph, and whose processes it has.
struct node_role {
  std::string node;
  std::string process;     ///< "worker", "server", "actor" or "launcher".
  std::uint32_t first = 0; ///< Index of its first process among those of the role.

  bool operator==(const node_role&) const = default;
};
using node_roles = std::vector<node_role>;

/// Returns the node of a process; null: no node has it.
const node_role* node_of(const node_roles& nodes, const process_name& who);

/// Returns "server 0", "worker 3", "launcher 0"; coordinator 0 is "coordinator", a standby
/// "coordinator 1".
std::string to_string(const process_name& who);

/// Returns "server 3, worker 1 (and 4 more)"; names at most eight.
std::string list_of(const std::vector<std::string>& names);

} // namespace troupe
