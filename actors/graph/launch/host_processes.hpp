// The processes of this host while a job lasts: which they are, and whom the user wants killed.
#pragma once

#include "actors/graph/launch/hung_processes.hpp"
#include "actors/graph/launch/supervisor.hpp"
#include "actors/graph/options/options.hpp"
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

  /// Starts all. `listener`: the listening socket of the coordinator and its standbys; -1: another
  /// host has them. Errors: io_failed.
  result<void> start(int listener, time_point now);
  /// As supervisor::tick; the workers of one process are lost one by one.
  std::vector<supervisor::loss> tick(time_point now);
  /// What they wait for, as lines for the user.
  std::vector<std::string> notices(time_point now) { return supervisor_.notices(now); }
  /// Carries out what --kill says; the lines for the user.
  std::vector<std::string> kill_planned(time_point training_since, time_point now);
  /// Returns the kills that are still to come.
  const std::vector<kill_plan>& kills() const { return kills_; }

  /// Kills those that hang, as hung_processes::find() says; the lines for the user.
  std::vector<std::string> kill_hung(const std::vector<member_status>& members, time_point now);

  /// The only one, which hangs. Nothing where it is just being started again.
  void kill_coordinator(time_point now) { (void)supervisor_.kill({role::coordinator, 0}, now); }

  /// The servers that the job has now: those that left it are not started again, and those that
  /// were added and nobody runs are started here, where `adds`. Lines for the user.
  std::vector<std::string> follow(const job_status& job, bool adds, time_point now);

  void wind_down() { supervisor_.wind_down(); }
  void kill_all() { supervisor_.kill_all(); }
  /// Processes that end by themselves when the job does.
  std::size_t running() const;
  const std::string& failed() const { return supervisor_.failed(); }

private:
  run_options options_;
  std::vector<process_name> members_;
  std::set<std::uint32_t> elsewhere_; ///< Servers that other hosts run, or that cannot run here.
  std::uint32_t standbys_;
  std::vector<kill_plan> kills_; ///< Those to come.
  supervisor supervisor_;
  hung_processes hung_;
};

} // namespace troupe
