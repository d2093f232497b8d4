#include "actors/graph/missing_members.hpp"

#include "actors/process_name.hpp"

#include <algorithm>

namespace troupe {

namespace {

bool is_away(const process_progress& which) {
  return which.dead || which.state == member_state::absent;
}

bool is_loading(const process_progress& which) {
  return which.state == member_state::joining || which.state == member_state::restoring;
}

/// Returns "server 3" for "server-3", and one name for all coordinators.
std::string name_of(const process_progress& which) {
  auto name = which.name;
  std::ranges::replace(name, '-', ' ');
  return which.is_coordinator ? "the coordinator" : name;
}

/// Returns the members that are away, in the order of the snapshot, or, if there are none, the
/// members that load.
std::vector<std::string> names_of_missing(const progress_snapshot& job) {
  std::vector<std::string> names;
  if (job.phase != job_phase::gathering && job.phase != job_phase::training)
    return names;
  const auto add_all = [&](bool (*is_missing)(const process_progress&)) {
    for (const auto& each : job.processes)
      if (is_missing(each))
        names.push_back(name_of(each));
  };
  add_all(is_away);
  if (names.empty())
    add_all(is_loading);
  if (job.processes.empty() && job.phase == job_phase::gathering)
    names.push_back("the coordinator");
  return names;
}

} // namespace

std::optional<std::string> missing_members::look(const progress_snapshot& job, time_point now) {
  auto names = names_of_missing(job);
  std::erase_if(since_, [&](const auto& known) {
    return std::ranges::find(names, known.first) == names.end();
  });
  std::erase_if(names, [&](const auto& name) {
    return now - since_.try_emplace(name, now).first->second < options_.patience;
  });
  if (names == told_ || (told_at_ && !names.empty() && now - *told_at_ < options_.pause))
    return std::nullopt;
  told_ = std::move(names);
  if (told_.empty())
    return std::nullopt;
  told_at_ = now;
  const bool gathers = job.phase == job_phase::gathering;
  return (gathers ? "waits for " : "is still without ") + list_of(told_);
}

} // namespace troupe
