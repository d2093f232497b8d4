#include "actors/graph/processes/host_processes.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

std::set<std::uint32_t> servers_elsewhere(const run_options& options) {
  std::set<std::uint32_t> all;
  for (std::uint32_t i = 0; i < options.servers.count; ++i)
    all.insert(i);
  for (const auto& who : processes_here(options))
    if (who.role == role::server)
      all.erase(who.index);
  return all;
}

} // namespace

host_processes::host_processes(const run_options& options, std::vector<std::string> command)
    : options_(options), members_(processes_here(options)), elsewhere_(servers_elsewhere(options)),
      standbys_(options.standbys), kills_(options.kills),
      supervisor_({.command = std::move(command),
                   .run_directory = options.run_directory,
                   .on_death = {{role::server, options.servers.on_death},
                                {role::worker, options.workers.on_death}}}) {}

result<void> host_processes::start(int listener, time_point now) {
  for (std::uint32_t i = 0; listener >= 0 && i <= standbys_; ++i)
    if (auto started = supervisor_.start({role::coordinator, i}, listener, now); !started)
      return started;
  for (const auto& who : members_)
    if (auto started = supervisor_.start(who, -1, now); !started)
      return started;
  return {};
}

std::vector<supervisor::loss> host_processes::tick(time_point now) {
  std::vector<supervisor::loss> all;
  for (const auto& loss : supervisor_.tick(now)) {
    if (loss.member.role != role::worker) {
      all.push_back(loss);
      continue;
    }
    for (const auto& worker : workers_of(options_, loss.member)) {
      all.push_back(loss);
      all.back().member = worker;
    }
  }
  return all;
}

std::vector<std::string> host_processes::follow(const job_status& job, bool adds, time_point now) {
  std::vector<std::string> lines;
  std::set<std::uint32_t> wanted;
  for (const auto& server : job.servers)
    if (std::ranges::find(job.draining, server) == job.draining.end())
      wanted.insert(server.value);
  std::set<process_name> leaving;
  for (const auto& who : members_)
    if (who.role == role::server && !wanted.contains(who.index))
      leaving.insert(who);
  supervisor_.let_go(std::move(leaving));
  std::erase_if(elsewhere_, [&](std::uint32_t index) { return !wanted.contains(index); });
  for (const auto& status : job.members) {
    const process_name who{status.member.role, status.member.index};
    if (who.role != role::server || !wanted.contains(who.index) || elsewhere_.contains(who.index)
        || supervisor_.is_kept(who))
      continue;
    if (status.member.incarnation != incarnation_id{}) {
      elsewhere_.insert(who.index);
    } else if (adds) {
      members_.push_back(who);
      if (auto started = supervisor_.start(who, -1, now); !started) {
        elsewhere_.insert(who.index);
        lines.push_back(started.error().text);
      }
    }
  }
  return lines;
}

/// Leaves out the standbys, which wait until they are killed.
std::size_t host_processes::running() const {
  const auto all = supervisor_.running();
  return all - std::min<std::size_t>(all, standbys_);
}

std::vector<job_event> host_processes::kill_planned(time_point training_since, time_point now) {
  std::vector<job_event> events;
  std::erase_if(kills_, [&](const kill_plan& plan) {
    if (now - training_since < plan.after)
      return false;
    events.push_back({event_kind::kill_injected, {{"member", to_string(plan.who)}}});
    const auto who =
      plan.who.role == role::worker ? process_of_worker(options_, plan.who.index) : plan.who;
    if (auto done = supervisor_.kill(who, now); !done)
      events.push_back(note_of(done.error().text));
    return true;
  });
  return events;
}

std::vector<job_event> host_processes::kill_hung(const std::vector<member_status>& members,
                                                 time_point now) {
  std::vector<job_event> events;
  for (const auto& who : hung_.find(supervisor_.incarnations(), members, now)) {
    events.push_back({event_kind::process_hung, {{"member", to_string(who)}}});
    if (auto done = supervisor_.kill(who, now); !done)
      events.push_back(note_of(done.error().text));
  }
  return events;
}

} // namespace troupe
