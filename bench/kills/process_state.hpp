// Reads how much of the system a process holds, to find leaks.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>

namespace troupe::bench {

/// The state of this process.
struct process_state {
  std::size_t descriptors = 0;
  std::size_t threads = 0;
  std::size_t arenas = 0; ///< Mappings of arenas, its own and its peers'.
  std::size_t actors = 0; ///< Set by the owner of the actor systems.
  double resident_mb = 0; ///< With the shared part.
  double shared_mb = 0;   ///< The shared part.
};

process_state state_of_this_process();

/// Returns the names in a directory; empty if there is none.
std::set<std::string> names_in(const std::filesystem::path& directory);

/// Checks `holds` every millisecond, as there is no event, for at most `seconds_max`. Returns true
/// if it held.
bool wait_until(const std::function<bool()>& holds, double seconds_max = 10);

} // namespace troupe::bench
