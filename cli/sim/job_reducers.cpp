// Workers of one process: they share a reducer, and they pause, end and die together.
#include "cli/sim/job_world_parts.hpp"

namespace troupe::sim {
namespace {

/// A process of which one worker has ended waits this long for the others.
constexpr time_point end_of_others = 200ms;

} // namespace

// -- requests -----------------------------------------------------------------------------------

/// Hands a request to the reducer or, without one, to the router.
void job_world::pass_on(worker_process& by, request_token token, request what) {
  if (by.reduces)
    return reduce(by, [&](reducer_effects& effects) {
      by.reduces->ask(token, std::move(what), local(by), effects);
    });
  router_effects effects;
  by.values_of.ask(token, std::move(what), local(by), effects);
  carry_out(by, effects);
}

void job_world::reduce(worker_process& by, const std::function<void(reducer_effects&)>& what) {
  reducer_effects effects;
  what(effects);
  for (auto& effect : effects) {
    if (auto* const next = std::get_if<sum_effect>(&effect))
      forward(by, *next);
    else if (const auto* const good = std::get_if<answered_effect>(&effect))
      reached(by, *good);
    else if (const auto* const bad = std::get_if<failed_effect>(&effect))
      reached(by, *bad);
    else
      ++tally_.left_out;
  }
}

/// Sends a forward to the router, which knows it by its number.
void job_world::forward(worker_process& by, sum_effect& effect) {
  request what;
  if (effect.pushes.size() > 1) {
    what.push = *sum_of(effect.pushes);
    ++tally_.sums;
  } else if (!effect.pushes.empty()) {
    what.push = *effect.pushes.front();
  }
  tally_.pulls_shared += effect.pull && !effect.pull->others.empty() ? 1 : 0;
  what.pull = std::move(effect.pull);
  router_effects effects;
  by.values_of.ask({effect.number.value}, std::move(what), local(by), effects);
  carry_out(by, effects);
}

void job_world::answered(worker_process& by, request_token token) {
  if (auto* const part = find_part(by.id))
    return answered(*part, token);
  if (auto* const responder = take_responder(by, token))
    answered(*responder, token);
}

void job_world::failed(worker_process& by, request_token token, const failure& why) {
  if (auto* const part = find_part(by.id))
    return failed(*part, token, why);
  if (auto* const responder = take_responder(by, token))
    failed(*responder, token, why);
}

/// Returns null if the asker has ended.
job_world::worker* job_world::take_responder(worker_process& by, request_token token) {
  return find_worker(by.responders.extract(token).mapped());
}

// -- one fate -----------------------------------------------------------------------------------

std::vector<std::uint32_t> job_world::group_of(std::uint32_t index) const {
  const auto size = options_.workers_per_process;
  const auto first = index / size * size;
  std::vector<std::uint32_t> all;
  for (auto i = first; i < std::min(first + size, job().workers + job().backup_workers); ++i)
    all.push_back(i);
  return all;
}

job_world::worker_process& job_world::process_of(const worker& one) {
  return *worker_processes_.at(one.id.index / options_.workers_per_process);
}

job_world::worker_process* job_world::find_worker_process(const member_id& who) {
  if (who.role == role::actor)
    return find_part(who);
  const auto found = worker_processes_.find(who.index / options_.workers_per_process);
  return found != worker_processes_.end() && found->second->id == who ? found->second.get()
                                                                      : nullptr;
}

std::vector<job_world::process*> job_world::all_of_process(process& one) {
  if (one.id.role != role::worker)
    return {&one};
  std::vector<process*> all;
  for (const auto index : group_of(one.id.index))
    if (const auto found = workers_.find(index); found != workers_.end())
      all.push_back(found->second.get());
  all.push_back(worker_processes_.at(one.id.index / options_.workers_per_process).get());
  return all;
}

/// Ends a worker. The other workers of its process end after `end_of_others`, or at once after a
/// failure.
void job_world::end_worker(const member_id& who, const std::optional<failure>& why) {
  const auto home = process_of(*workers_.at(who.index)).id;
  workers_.erase(who.index);
  const bool is_last = std::ranges::none_of(
    group_of(who.index), [&](std::uint32_t index) { return workers_.contains(index); });
  if (is_last || why)
    return end_worker_process(home, why);
  at(now_ + end_of_others, [this, home] { end_worker_process(home, {}); });
}

void job_world::end_worker_process(const member_id& who, const std::optional<failure>& why) {
  if (find_worker_process(who) != nullptr)
    gone(home_of(who), why);
}

std::vector<member_id> job_world::take_down_workers(std::uint32_t first) {
  const auto home = worker_processes_.extract(first / options_.workers_per_process);
  std::vector<member_id> all;
  for (const auto index : group_of(first)) {
    all.push_back(member_of(worker_id{index}, {home.mapped()->first.value + (index - first)}));
    workers_.erase(index);
  }
  return all;
}

} // namespace troupe::sim
