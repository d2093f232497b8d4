// The servers and clients of one contestant of push_pull, as processes.
#pragma once

#include "bench/child.hpp"
#include "bench/store/store_contest.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace troupe::bench {

/// What one run of all clients together took.
struct store_run {
  double seconds = 0;     ///< From the first to begin to the last to end.
  double cpu_seconds = 0; ///< Of all processes, meanwhile.
  std::vector<double> trips;
};

class store_processes {
public:
  /// Throws std::runtime_error where one of them cannot play its part.
  store_processes(const store_contestant& who, const store_load& what);

  /// Every client does so many operations, at the same time.
  store_run run(operation what, std::size_t count);
  std::vector<double> probe(std::size_t pushes, std::size_t count);
  /// Calls `report` with what the one client says, every second.
  void flood(std::chrono::milliseconds interval, std::chrono::seconds duration,
             const std::function<void(const json&)>& report);

  pid_t server(std::size_t i) const { return servers_[i]->pid(); }
  pid_t client(std::size_t i) const { return clients_[i]->pid(); }
  /// Peaks of all clients, and of all servers.
  double clients_megabytes() const;
  double servers_megabytes() const;

private:
  double cpu_of_all() const;

  std::vector<std::unique_ptr<child>> servers_, clients_;
};

/// What a child of store_processes does; `all`: the same contestants.
int play_store_part(const json& part, const std::vector<store_contestant>& all);

} // namespace troupe::bench
