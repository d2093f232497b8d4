#include "actors/graph/worker_groups.hpp"

#include <algorithm>

namespace troupe {

namespace {

// Members of all other roles are no processes of a host, or are started by the launcher itself.
static_assert(role_max == role::actor);

/// Returns the servers, workers and actors of this host.
std::vector<process_name> members_here(const run_options& options) {
  auto all = options.here;
  if (all.empty()) {
    for (std::uint32_t i = 0; i < options.servers.count; ++i)
      all.push_back(process_of(server_id{i}));
    for (std::uint32_t i = 0; i < options.workers.count + options.workers.backups; ++i)
      all.push_back(process_of(worker_id{i}));
    for (std::uint32_t i = 0; i < options.actors; ++i)
      all.push_back({role::actor, i});
  }
  return all;
}

/// Returns the workers of this host that share a process with `worker`, in ascending order.
std::vector<std::uint32_t> group_of(const run_options& options, std::uint32_t worker) {
  std::vector<std::uint32_t> group;
  for (const auto& who : members_here(options))
    if (who.role == role::worker
        && who.index / options.workers.per_process == worker / options.workers.per_process)
      group.push_back(who.index);
  std::ranges::sort(group);
  return group;
}

} // namespace

process_name process_of_worker(const run_options& options, std::uint32_t worker) {
  const auto group = group_of(options, worker);
  return process_of(worker_id{group.empty() ? worker : group.front()});
}

std::vector<member_id> members_of(const run_options& options, const member_id& process) {
  if (process.role != role::worker)
    return {process};
  std::vector<member_id> all;
  for (const auto index : group_of(options, process.index))
    all.push_back(
      member_of(worker_id{index}, {process.incarnation.value + (index - process.index)}));
  return all;
}

std::vector<process_name> processes_here(const run_options& options) {
  auto all = members_here(options);
  if (options.workers.per_process > 1)
    std::erase_if(all, [&](const process_name& who) {
      return who.role == role::worker && process_of_worker(options, who.index) != who;
    });
  return all;
}

} // namespace troupe
