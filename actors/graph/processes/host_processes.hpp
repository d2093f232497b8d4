// Runs the processes of this host while a job lasts, and kills those that hang or are in --kill.
#pragma once

#include "actors/graph/options/options.hpp"
#include "actors/graph/processes/hung_processes.hpp"
#include "actors/graph/processes/supervisor.hpp"
#include "actors/graph/worker_groups.hpp"
#include "base/clock.hpp"
#include "serialization/messages.hpp"

#include <set>
#include <string>
#include <vector>

namespace troupe {

class host_processes {
public:
  /// `command`: the words that the launcher was started with.
  host_processes(const run_options& options, std::vector<std::string> command);

  /// Starts all processes. `listener`: the listening socket of the coordinator and its standbys;
  /// -1: another host has them. Errors: io_failed.
  result<void> start(int listener, time_point now);
  /// Does as supervisor::tick, with one loss for each worker of a process.
  std::vector<supervisor::loss> tick(time_point now);
  /// Returns the notices of processes as lines for the user.
  std::vector<std::string> notices(time_point now) { return supervisor_.notices(now); }
  /// Kills the processes of --kill whose time has come. Returns the events.
  std::vector<job_event> kill_planned(time_point training_since, time_point now);
  /// Returns the kills that are still to come.
  const std::vector<kill_plan>& kills() const { return kills_; }

  /// Kills processes that hang, by hung_processes::find(). Returns the events.
  std::vector<job_event> kill_hung(const std::vector<member_status>& members, time_point now);

  /// Kills the only coordinator, which hangs. Has no effect while it is being started again.
  void kill_coordinator(time_point now) { (void)supervisor_.kill({role::coordinator, 0}, now); }

  /// Follows the job's set of servers. Servers that left the job are not started again. If `adds`,
  /// added servers that no host runs are started here. Returns lines for the user.
  std::vector<std::string> follow(const job_status& job, bool adds, time_point now);

  void wind_down() { supervisor_.wind_down(); }
  void kill_all() { supervisor_.kill_all(); }
  /// Returns the number of running processes that end by themselves when the job does.
  std::size_t running() const;
  const std::optional<failure>& failed() const { return supervisor_.failed(); }

private:
  run_options options_;
  std::vector<process_name> members_;
  std::set<std::uint32_t> elsewhere_; ///< Servers that other hosts run, or that cannot run here.
  std::uint32_t standbys_;
  std::vector<kill_plan> kills_; ///< Kills still to come.
  supervisor supervisor_;
  hung_processes hung_;
};

} // namespace troupe
