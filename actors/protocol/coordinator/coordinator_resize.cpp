// Adds and drains servers while the job runs: checks the requests, and follows their progress.
#include "actors/protocol/coordinator/coordinator.hpp"

#include "actors/protocol/mutation.hpp"
#include "fmt/format.h"

#include <algorithm>

namespace troupe {

namespace {

job_event about_server(event_kind kind, const server_id& server) {
  return {kind, {{"member", name_of({role::server, server.value, {}})}}};
}

} // namespace

std::set<server_id> coordinator::slots() const {
  if (!state_.servers.empty())
    return state_.servers;
  std::set<server_id> all;
  for (std::uint32_t index = 0; index < job_.servers; ++index)
    all.insert({index});
  return all;
}

// -- requests -----------------------------------------------------------------------------------

void coordinator::reconcile(const member_id& from, const resize& wanted, time_point now,
                            effects_ref effects) {
  auto* record = members_.find(from);
  // Each status repeats the request.
  if (recovering_ || phase_ == job_phase::stopped || record == nullptr || record->obeyed == wanted)
    return;
  auto draining = state_.draining;
  draining.insert(wanted.drain.begin(), wanted.drain.end());
  for (const auto& server : wanted.add)
    draining.erase(server);
  auto refused = rejection_to(wanted);
  if (refused.empty())
    if (const auto done = placement_.drain(draining); !done)
      refused = done.error().text;
  if (!refused.empty()) {
    members_.leave(from); // Else it would be told that all is well.
    reject_member(from, refused, effects);
    return;
  }
  record->obeyed = wanted;
  for (const auto& server : wanted.add)
    assign_slot(server, now, effects);
  for (const auto& server : draining)
    if (!state_.draining.contains(server))
      notify(about_server(event_kind::server_draining, server), effects);
  for (const auto& server : state_.draining)
    if (!draining.contains(server))
      notify(about_server(event_kind::drain_cancelled, server), effects);
  state_.draining = std::move(draining);
  ++placements_;
  persist(effects);
}

/// Returns the reason to refuse the request; empty: it can be granted.
std::string coordinator::rejection_to(const resize& wanted) const {
  auto staying = slots();
  for (const auto& server : wanted.add) {
    if (server.value >= servers_max)
      return fmt::format("cannot add server {}: a job has servers 0 to {}", server.value,
                         servers_max - 1);
    staying.insert(server);
  }
  const auto all = staying;
  for (const auto& server : state_.draining)
    if (std::ranges::find(wanted.add, server) == wanted.add.end())
      staying.erase(server);
  for (const auto& server : wanted.drain) {
    if (!all.contains(server))
      return fmt::format("cannot drain server {}: the job has no such server", server.value);
    staying.erase(server);
  }
  if (wanted.drain.empty() || staying.size() >= job_.replicas)
    return {};
  if (staying.empty())
    return "cannot drain: no server would be left";
  return fmt::format("cannot drain: {} would be left, and each chain has {} replicas",
                     staying.size() == 1 ? "one server" : fmt::format("{} servers", staying.size()),
                     job_.replicas);
}

/// Adds the server to the job; it need not be present yet.
void coordinator::assign_slot(const server_id& server, time_point now, effects_ref effects) {
  auto all = slots();
  if (!all.insert(server).second)
    return;
  state_.servers = std::move(all);
  newcomers_.insert(server);
  gone_[server.value] = now;
  notify(about_server(event_kind::server_added, server), effects);
}

// -- progress -----------------------------------------------------------------------------------

/// Adds the server to the job if no request did: another host may lend one.
void coordinator::welcome_server(const member_id& who, time_point now, effects_ref effects) {
  if (!slots().contains({who.index})) {
    assign_slot({who.index}, now, effects);
    persist(effects);
  }
  servers_[who.index] = {who, {}, now, 0};
  gone_[who.index] = now; // Until its status names the chains.
  ++placements_;
}

void coordinator::settle_newcomers(time_point now, effects_ref effects) {
  if (newcomers_.empty() || !placement_.is_at_rest())
    return;
  for (const auto& server : expected_servers(now))
    if (newcomers_.contains(server))
      return; // Chains wait for this server.
  std::vector<std::size_t> loads;
  for (const auto& [index, server] : servers_)
    if (!state_.draining.contains({index}))
      loads.push_back(placement_.load({index}));
  if (loads.empty() || std::ranges::max(loads) > std::ranges::min(loads) + 1)
    return; // A move waits for statuses.
  std::erase_if(newcomers_, [&](const server_id& server) {
    const auto found = servers_.find(server.value);
    const auto load = placement_.load(server);
    if (found == servers_.end() || gone_.contains(server.value)
        || !placement_.is_trusted(found->second.id))
      return false;
    notify({load == 0 ? event_kind::server_idle : event_kind::server_placed,
            {{"member", name_of(found->second.id)}, {"shards", load}}},
           effects);
    ++placements_;
    return true;
  });
}

/// Tells drained servers that hold no chain any more to end, and removes them from the job.
void coordinator::release_drained(time_point now, effects_ref effects) {
  // After a restart of the coordinator, a server that was not heard yet may still come.
  const bool may_come = now - started_at_ <= options_.liveness_timeout && state_.term > 1;
  const auto draining = state_.draining;
  for (const auto& server : draining) {
    const auto found = servers_.find(server.value);
    if ((!placement_.is_empty(server) && !mutated(mutation::drained_too_soon))
        || (found == servers_.end() && may_come))
      continue;
    state_.servers = slots();
    state_.servers.erase(server);
    state_.draining.erase(server);
    placement_.keep(server);
    newcomers_.erase(server);
    gone_.erase(server.value);
    ++placements_;
    notify(about_server(event_kind::server_drained, server), effects);
    persist(effects);
    if (found == servers_.end())
      continue;
    const auto who = found->second.id;
    servers_.erase(found);
    members_.mark_dead(who);
    placement_.dead(who);
    reject_member(who, "", effects);
  }
}

} // namespace troupe
