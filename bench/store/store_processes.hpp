// Runs the servers and clients of one contestant of push_pull as processes.
#pragma once

#include "bench/child.hpp"
#include "bench/store/store_contest.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace troupe::bench {

/// The cost of one run of all clients together.
struct store_run {
  double seconds = 0;     ///< From the first begin to the last end.
  double cpu_seconds = 0; ///< CPU time of all processes meanwhile.
  std::vector<double> trips;
};

class store_processes {
public:
  /// Throws std::runtime_error if a process cannot play its part.
  store_processes(const store_contestant& who, const store_load& what);

  /// Runs `count` operations on every client, at the same time.
  store_run run(operation what, std::size_t count);
  std::vector<double> probe(std::size_t pushes, std::size_t count);
  /// Calls `report` with each line of the only client, every second.
  void flood(std::chrono::milliseconds interval, std::chrono::seconds duration,
             const std::function<void(const json&)>& report);

  pid_t server(std::size_t i) const { return servers_[i]->pid(); }
  pid_t client(std::size_t i) const { return clients_[i]->pid(); }
  /// Returns the peaks of all clients, and of all servers.
  double clients_megabytes() const;
  double servers_megabytes() const;

private:
  double cpu_of_all() const;

  std::vector<std::unique_ptr<child>> servers_, clients_;
};

/// Plays the part of a child of store_processes; `all`: the same contestants.
int play_store_part(const json& part, const std::vector<store_contestant>& all);

} // namespace troupe::bench
