// What a process holds of the system, for finding out what it did not give back.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>

namespace troupe::bench {

/// Of this process.
struct process_state {
  std::size_t descriptors = 0;
  std::size_t threads = 0;
  std::size_t arenas = 0; ///< Mappings of them, its own and its peers'.
  std::size_t actors = 0; ///< Filled in by who has the actor systems.
  double resident_mb = 0; ///< With what is shared ...
  double shared_mb = 0;   ///< ... which is this.
};

process_state state_of_this_process();

/// Names in a directory; empty where there is none.
std::set<std::string> names_in(const std::filesystem::path& directory);

/// Looks every millisecond, because nobody tells, until `holds`; at most so long. Returns whether.
bool wait_until(const std::function<bool()>& holds, double seconds_max = 10);

} // namespace troupe::bench
