// The launcher, which starts processes and sees some of them die, and the commands `troupe add` and
// `troupe drain`.
#include "cli/sim/job_world_parts.hpp"

namespace troupe::sim {

void job_world::observe() {
  observer_status body;
  body.deaths = deaths_;
  body.done = phase_seen_ == job_phase::finished;
  body.stop = stop_at_ && now_ >= *stop_at_;
  send_up(*launcher_, std::move(body));
  for (auto& [unused, each] : commands_) {
    observer_status wanted;
    wanted.resize = each.wanted;
    send_up(each, std::move(wanted));
  }
}

void job_world::reconcile_as_observer(const desired_state& what) {
  const auto* mine = std::get_if<job_status>(&what.body);
  if (mine == nullptr)
    return;
  if (const auto found = commands_.find(what.to); found != commands_.end()) {
    const auto& wanted = found->second.wanted;
    const bool heard =
      std::ranges::all_of(
        wanted.add,
        [&](auto x) { return std::ranges::find(mine->servers, x) != mine->servers.end(); })
      && std::ranges::all_of(wanted.drain, [&](auto x) {
           return std::ranges::find(mine->draining, x) != mine->draining.end();
         });
    if (what.stop || heard)
      commands_.erase(found);
    return;
  }
  if (what.to != launcher_->id || !launcher_->takes(what))
    return;
  phase_seen_ = mine->phase;
  told_to_stop_ = told_to_stop_ || what.stop;
  if (told_to_stop_)
    return;
  slots_.clear();
  for (const auto& each : mine->servers) {
    slots_.insert(each.value);
    const bool starts = std::ranges::any_of(
      starting_, [&](const member_id& who) { return who == member_of(each, who.incarnation); });
    if (!starts && !servers_.contains(each.value))
      start_again(member_of(each, next_incarnation()), now_ + pick_ms(10, 200));
  }
}

void job_world::begin_command() {
  if (options_.spare_servers == 0)
    return;
  const auto servers_max = job().servers + options_.spare_servers;
  command fresh;
  fresh.id = {role::observer, 1, next_incarnation()};
  const server_id which{static_cast<std::uint32_t>(pick(0, servers_max - 1))};
  if (chance(0.6))
    fresh.wanted.add.push_back(which);
  else
    fresh.wanted.drain.push_back(which);
  if (is_traced())
    note(std::string{"a command wants to "} + (fresh.wanted.add.empty() ? "drain" : "add")
         + " server " + std::to_string(which.value));
  at(now_ + 3s, [this, who = fresh.id] { commands_.erase(who); });
  commands_.emplace(fresh.id, std::move(fresh));
}

} // namespace troupe::sim
