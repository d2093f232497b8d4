#include "actors/graph/report/missing_members.hpp"

#include "actors/protocol/process_name.hpp"

#include <algorithm>

namespace troupe {

namespace {

std::vector<std::string> names_of_missing(const progress_snapshot& job) {
  std::vector<std::string> names;
  if (job.phase != job_phase::gathering && job.phase != job_phase::training)
    return names;
  for (const auto& each : missing_processes(job))
    names.push_back(spoken_name(each));
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
    return now - since_.try_emplace(name, now).first->second < patience;
  });
  if (names == told_ || (told_at_ && !names.empty() && now - *told_at_ < pause))
    return std::nullopt;
  told_ = std::move(names);
  if (told_.empty())
    return std::nullopt;
  told_at_ = now;
  const bool gathers = job.phase == job_phase::gathering;
  return (gathers ? "the job waits for " : "the job is still without ") + list_of(told_);
}

} // namespace troupe
