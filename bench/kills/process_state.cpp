#include "bench/kills/process_state.hpp"

#include "bench/child.hpp"

#include <poll.h>

#include <fstream>
#include <system_error>

namespace troupe::bench {

namespace fs = std::filesystem;

process_state state_of_this_process() {
  process_state found;
  found.descriptors = names_in("/proc/self/fd").size() - 1; // One reads the directory.
  found.threads = names_in("/proc/self/task").size();
  std::ifstream maps{"/proc/self/maps"};
  for (std::string line; std::getline(maps, line);)
    found.arenas += line.find("troupe-arena") != std::string::npos ? 1 : 0;
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:"))
      found.resident_mb = std::stod(line.substr(6)) / 1024;
    else if (line.starts_with("RssShmem:"))
      found.shared_mb = std::stod(line.substr(9)) / 1024;
  }
  return found;
}

std::set<std::string> names_in(const fs::path& directory) {
  std::set<std::string> found;
  std::error_code none;
  for (const auto& each : fs::directory_iterator{directory, none})
    found.insert(each.path().filename());
  return found;
}

bool wait_until(const std::function<bool()>& holds, double seconds_max) {
  const double end = seconds_now() + seconds_max;
  while (!holds()) {
    if (seconds_now() >= end)
      return false;
    poll(nullptr, 0, 1);
  }
  return true;
}

} // namespace troupe::bench
