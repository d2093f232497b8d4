// Makes the desired state of each member, as a function of the coordinator's state.
#include "actors/protocol/coordinator/coordinator.hpp"

#include "actors/protocol/clock_table.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// A status is answered if this time has passed since the last desired state, which may be lost.
constexpr auto repeat_after = 100ms;

/// Returns whether a member must get the new desired state at once. Observers wait for their next
/// status when only counters moved.
bool differs(const desired_state& now_valid, const desired_state& sent) {
  if (now_valid.stop != sent.stop || now_valid.failed != sent.failed)
    return true;
  const auto* shown = std::get_if<job_status>(&now_valid.body);
  const auto* before = std::get_if<job_status>(&sent.body);
  if (shown == nullptr || before == nullptr)
    return now_valid.body != sent.body;
  return shown->phase != before->phase || shown->checkpoint != before->checkpoint
         || shown->events_total != before->events_total || shown->view != before->view
         || shown->servers != before->servers || shown->draining != before->draining;
}

member_status absent(role kind, std::uint32_t index) {
  member_status one;
  one.member = {kind, index, {}};
  return one;
}

} // namespace

void coordinator::send_changed(time_point now, coordinator_effects& effects) {
  const common_desired now_valid{
    phase_,        view_.config, frozen_, schedule_.asked(), schedule_.asked_clock(),
    events_total_, placements_,  roster_};
  const bool all = std::exchange(told_, now_valid) != now_valid;
  for (auto& [slot, record] : members_.all()) {
    if (!std::exchange(record.outdated, false) && !all)
      continue;
    auto what = desired_for(record.id);
    if (record.sent.sequence == 0 || differs(what, record.sent))
      send(record, std::move(what), now, effects);
  }
}

void coordinator::answer(const member_id& who, time_point now, coordinator_effects& effects) {
  auto* record = members_.find(who);
  if (record == nullptr || (recovering_ && phase_ != job_phase::stopped))
    return;
  if (now - record->sent_at >= repeat_after)
    send(*record, desired_for(who), now, effects);
}

void coordinator::send(member_entry& to, desired_state what, time_point now,
                       coordinator_effects& effects) {
  what.sequence = next_desired_++;
  to.sent = what;
  to.sent_at = now;
  effects.push_back(send_effect{std::move(what)});
}

/// Tells a process that is not a member to end.
void coordinator::reject_member(const member_id& who, const std::string& why,
                                coordinator_effects& effects) {
  desired_state what{who, state_.term, next_desired_++, true, why, {}};
  if (who.role == role::server)
    what.body = desired_server{};
  else if (who.role == role::observer)
    what.body = job_status{};
  effects.push_back(send_effect{std::move(what)});
}

desired_state coordinator::desired_for(const member_id& who) {
  ++desired_made_;
  desired_state what{who, state_.term, 0, phase_ == job_phase::stopped, failed_, {}};
  if (who.role == role::worker)
    what.body = desired_for_worker(who.index);
  else if (who.role == role::server)
    what.body = desired_for_server(who);
  else
    what.body = status_for_observer();
  return what;
}

desired_worker coordinator::desired_for_worker(std::uint32_t index) const {
  const auto& worker = workers_.at(index);
  desired_worker mine;
  mine.view = view_;
  mine.admitted = worker.stage == admission::admitted;
  mine.start_clock = worker.start_clock;
  if (mine.admitted && !frozen_)
    mine.leases = ledger_.leases_of({index});
  return mine;
}

desired_server coordinator::desired_for_server(const member_id& who) const {
  desired_server mine;
  mine.job = job_;
  mine.generation = state_.generation;
  mine.chain_of = state_.chain_of;
  for (std::uint32_t index = 0; index < chains_.size(); ++index)
    mine.chains.push_back({{index}, placement_.records()[index]});
  for (const auto& [index, server] : servers_)
    mine.servers.push_back({server.id, server.report.address});
  if (const auto found = servers_.find(who.index); found != servers_.end())
    mine.heard_ns = found->second.echo_ns;
  for (const auto& [place, record] : members_.all()) {
    if (place.role != role::worker)
      continue;
    const auto& worker = workers_.at(place.index);
    const bool known = worker.stage == admission::admitted;
    const bool unbound = known && worker.measure == straggler_measure::demoted;
    if (known || worker.stage == admission::candidate)
      mine.workers.push_back({{place.index},
                              record.id.incarnation,
                              unbound ? unbound_clock : worker.start_clock,
                              known});
  }
  mine.checkpoint = schedule_.asked();
  mine.checkpoint_clock = schedule_.asked_clock();
  return mine;
}

job_status coordinator::status_for_observer() const {
  job_status mine;
  mine.view = view_;
  mine.phase = phase_;
  mine.batches_done = ledger_.settled();
  mine.checkpoint = state_.committed;
  mine.members = statuses();
  const auto servers = slots();
  mine.servers.assign(servers.begin(), servers.end());
  mine.draining.assign(state_.draining.begin(), state_.draining.end());
  mine.events.assign(events_.begin(), events_.end());
  mine.events_total = events_total_;
  mine.job = job_;
  mine.coordinator = options_.index;
  mine.directory_mark = options_.directory_mark;
  return mine;
}

member_status coordinator::status_of_server(std::uint32_t index, bool over) const {
  auto one = absent(role::server, index);
  if (const auto lost = rolled_back_.find(index); lost != rolled_back_.end())
    one.updates_rolled_back = lost->second;
  const auto found = servers_.find(index);
  if (found == servers_.end())
    return one;
  one.member = found->second.id;
  one.server = found->second.report.counters;
  bool complete = true;
  for (const auto& mine : found->second.report.chains) {
    const auto& active = placement_.records()[mine.chain.value].active;
    const bool joins = active.joiner == one.member;
    const bool is_member = std::ranges::find(active.members, one.member) != active.members.end();
    complete = complete && !joins && (!is_member || mine.status.complete);
    one.clock = std::max(one.clock, mine.version);
  }
  one.state = over                                        ? member_state::finished
              : found->second.report.chains.empty()       ? member_state::joining
              : complete && !newcomers_.contains({index}) ? member_state::active
                                                          : member_state::restoring;
  return one;
}

std::vector<member_status> coordinator::statuses() const {
  const bool over = phase_ == job_phase::finished || phase_ == job_phase::stopped;
  std::vector<member_status> all;
  for (const auto& server : slots())
    all.push_back(status_of_server(server.value, over));
  for (const auto& [index, worker] : workers_) {
    auto one = absent(role::worker, index);
    const bool busy = worker.stage == admission::admitted && ledger_.holds_work({index});
    const bool idle = over || phase_ == job_phase::finishing
                      || (phase_ == job_phase::training && ledger_.remaining() == 0);
    one.state = worker.measure == straggler_measure::evicted ? member_state::evicted
                : busy                                       ? member_state::active
                : idle                                       ? member_state::finished
                                                             : member_state::joining;
    one.clock = worker.report.clock;
    one.worker = worker.report.counters;
    all.push_back(std::move(one));
  }
  for (std::uint32_t index = 0; index < workers_expected(); ++index) {
    if (workers_.contains(index))
      continue;
    all.push_back(absent(role::worker, index));
    if (measure_of({index}) == straggler_measure::evicted)
      all.back().state = member_state::evicted;
  }
  for (auto& one : all) {
    const auto slot = members_.all().find({one.member.role, one.member.index, {}});
    if (slot != members_.all().end()) {
      one.member = slot->second.id;
      one.rss_bytes_max = slot->second.rss_bytes_max;
    }
  }
  return all;
}

} // namespace troupe
