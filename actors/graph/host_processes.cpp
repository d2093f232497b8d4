#include "actors/graph/host_processes.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

std::vector<process_name> processes_here(const run_options& options) {
  if (!options.here.empty())
    return options.here;
  std::vector<process_name> all;
  for (std::uint32_t i = 0; i < options.servers; ++i)
    all.push_back({role::server, i});
  for (std::uint32_t i = 0; i < options.workers + options.backup_workers; ++i)
    all.push_back({role::worker, i});
  return all;
}

host_processes::host_processes(const run_options& options, std::vector<std::string> command)
    : members_(processes_here(options)), standbys_(options.standbys), kills_(options.kills),
      supervisor_({.command = std::move(command), .run_directory = options.run_directory}) {}

result<void> host_processes::start(int listener, time_point now) {
  for (std::uint32_t i = 0; listener >= 0 && i <= standbys_; ++i)
    if (auto started = supervisor_.start({role::coordinator, i}, listener, now); !started)
      return started;
  for (const auto& who : members_)
    if (auto started = supervisor_.start(who, -1, now); !started)
      return started;
  return {};
}

/// Standbys wait for as long as they are left alone.
std::size_t host_processes::running() const {
  const auto all = supervisor_.running();
  return all - std::min<std::size_t>(all, standbys_);
}

std::vector<std::string> host_processes::kill_planned(time_point training_since, time_point now) {
  std::vector<std::string> lines;
  std::erase_if(kills_, [&](const kill_plan& plan) {
    if (now - training_since < plan.after)
      return false;
    lines.push_back("killing " + to_string(plan.who));
    if (auto done = supervisor_.kill(plan.who, now); !done)
      lines.push_back(done.error().text);
    return true;
  });
  return lines;
}

std::vector<std::string> host_processes::kill_hung(const std::vector<member_status>& members,
                                                   time_point now) {
  std::vector<std::string> lines;
  for (const auto& who : hung_.find(supervisor_.incarnations(), members, now)) {
    lines.push_back(to_string(who) + " hangs: killing it");
    if (auto done = supervisor_.kill(who, now); !done)
      lines.push_back(done.error().text);
  }
  return lines;
}

} // namespace troupe
