// Decides which servers are present, places shards on them, and adds and drains servers while the
// job runs. The rest of the class is in coordinator.cpp; its tick() has the ordinary timeout of
// members.
#include "actors/protocol/coordinator/coordinator.hpp"

#include "actors/protocol/mutation.hpp"
#include "fmt/format.h"

#include <algorithm>

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// A server that acts in a chain is waited for this many times longer than others.
constexpr int last_copy_patience = 6;

bool is_member(const chain_config& config, const member_id& who) {
  return std::find(config.members.begin(), config.members.end(), who) != config.members.end();
}

/// Returns whether the server cannot serve its chain, for a reason of its own.
bool has_failed(const replica_status& what) { return what.failed && what.unreadable == 0; }

job_event about_server(event_kind kind, const server_id& server) {
  return {kind, {{"member", name_of(member_of(server))}}};
}

} // namespace

// -- presence -----------------------------------------------------------------------------------

/// Adds the server to the job if no request did: another host may lend one.
void coordinator::take_in(const member_id& who, const server_status& /*body*/, time_point now,
                          effects_ref effects) {
  if (!slots().contains({who.index})) {
    assign_slot({who.index}, now, effects);
    persist(effects);
  }
  servers_[who.index] = {who, {}, now, 0};
  gone_[who.index] = now; // Until its status names the chains.
}

void coordinator::on_server_lost(const member_id& who, time_point now, effects_ref effects) {
  placement_.dead(who);
  shards_.on_server_lost(who, recovery(now, effects));
}

/// Handles members of chains that do not report, or are not trusted.
void coordinator::detect_silent_servers(time_point now, effects_ref effects) {
  if (recovering_)
    return;
  std::set<member_id> all;
  for (const auto& record : placement_.records())
    all.merge(members_of(record));
  for (const auto& [index, server] : servers_)
    all.insert(server.id);
  for (const auto& who : all) {
    const auto found = servers_.find(who.index);
    if (found == servers_.end())
      detect_unheard(who, now, effects);
    else if (found->second.id != who)
      on_server_lost(who, now, effects); // Its successor is present.
    else if (now - found->second.trusted_at > options_.silence_timeout)
      placement_.silent(who);
  }
  for (const auto& who : members_.silent(now, last_copy_patience * options_.liveness_timeout))
    if (servers_.contains(who.index) && servers_.at(who.index).id == who)
      on_member_lost(who, "silent for too long", now, effects);
}

/// Handles a server that only an earlier coordinator knew.
void coordinator::detect_unheard(const member_id& who, time_point now, effects_ref effects) {
  if (placement_.is_dead(who))
    return;
  placement_.silent(who);
  const auto patience = acts_in_a_chain(who) ? last_copy_patience : 1;
  if (now - started_at_ <= patience * options_.liveness_timeout)
    return;
  notify({event_kind::server_lost,
          {{"member", name_of(who)}, {"reason", "silent since the coordinator restarted"}}},
         effects);
  if (mutated(mutation::given_up_not_rejected))
    on_server_lost(who, now, effects);
  else
    on_member_lost(who, "", now, effects); // If it comes after all, it is told to end.
}

/// Returns whether a silent server is in an active chain. Then all servers of that chain are
/// silent, and declaring it dead may lose acknowledged pushes.
bool coordinator::acts_in_a_chain(const member_id& who) const {
  return job_.replicas > 1 && !mutated(mutation::last_one_given_up)
         && std::ranges::any_of(placement_.records(), [&](const chain_metadata& record) {
              return is_member(record.active, who);
            });
}

/// Returns the servers of the job that are still to come, may come back, or came just now.
std::set<server_id> coordinator::expected_servers(time_point now) const {
  const auto has_begun = [](const chain_metadata& x) { return x.active.config != config_id{}; };
  const bool begun = std::ranges::all_of(placement_.records(), has_begun);
  std::set<server_id> all;
  for (const auto& [index, since] : gone_) {
    const bool came_before = begun || seen_.contains(member_of(server_id{index}));
    if (!came_before || now - since < options_.return_timeout)
      all.insert({index});
  }
  return all;
}

/// Takes a server's status. Returns whether its chain reports count.
bool coordinator::hear(const member_id& from, const server_status& body, time_point now,
                       effects_ref effects) {
  auto& server = servers_[from.index];
  server.report = body;
  if (body.chains.size() < state_.chains.size())
    return true; // It does not know all chains yet; chains that wait for it go on waiting.
  gone_.erase(from.index);
  const auto failed = std::ranges::find_if(body.chains, has_failed);
  if (failed != body.chains.end() && is_dispensable(from)) {
    notify_once(
      from,
      {event_kind::server_removed, {{"member", name_of(from)}, {"reason", failed->failed->text}}},
      effects);
    return false; // As if it were silent.
  }
  std::vector<chain_status> statuses(state_.chains.size());
  for (const auto& mine : body.chains)
    statuses[mine.shard.value] = mine.status;
  placement_.heard(from, std::move(statuses));
  if (placement_.is_trusted(from)) {
    server.trusted_at = now;
    server.echo_ns = body.clock_ns;
  }
  return true;
}

/// Returns whether each of its chains has another member that may go on. A chain that is being
/// started has none.
bool coordinator::is_dispensable(const member_id& who) const {
  const auto may_go_on = [&](const member_id& other) {
    const auto found = servers_.find(other.index);
    const bool failed = found != servers_.end() && found->second.id == other
                        && std::ranges::any_of(found->second.report.chains, has_failed);
    return other != who && !placement_.is_dead(other) && !failed;
  };
  return std::ranges::all_of(placement_.records(), [&](const chain_metadata& record) {
    const auto& [active, base_checkpoint, proposed] = record;
    if (proposed && proposed->generation != active.generation)
      return !is_member(*proposed, who);
    return !is_member(active, who) || std::ranges::any_of(active.members, may_go_on);
  });
}

// -- placement -----------------------------------------------------------------------------------

void coordinator::place_shards(time_point now, effects_ref effects) {
  placement_.expect(expected_servers(now));
  const auto context = recovery(now, effects);
  bool changed = shards_.begin_generations(context);
  if (shards_.is_rolling_back())
    workers_.reset_clocks();
  while (placement_.decide(now))
    changed = true;
  for (const auto& [index, leaves, stays] : placement_.take_separations())
    notify(
      {event_kind::servers_disconnected,
       {{"member", name_of(leaves)}, {"other", name_of(stays)}, {"shard", std::uint64_t{index}}}},
      effects);
  if (!changed)
    return;
  state_.chains = placement_.records();
  ++placements_;
  persist(effects);
  shards_.follow_records(context);
}

// -- servers that are added and drained ----------------------------------------------------------

void coordinator::reconcile(const member_id& from, const resize& wanted, time_point now,
                            effects_ref effects) {
  auto* record = members_.find(from);
  // Each status repeats the request.
  if (recovering_ || phase_ == job_phase::stopped || record == nullptr
      || record->reconciled == wanted)
    return;
  auto draining = state_.draining;
  draining.insert(wanted.drain.begin(), wanted.drain.end());
  for (const auto& server : wanted.add)
    draining.erase(server);
  auto accepted = check(wanted);
  if (accepted)
    accepted = placement_.drain(draining);
  if (!accepted) {
    members_.leave(from); // Otherwise the next desired state would accept the request.
    reject_member(from, accepted.error(), effects);
    return;
  }
  record->reconciled = wanted;
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

/// Checks that the request can be granted. Errors: invalid_argument.
result<void> coordinator::check(const resize& wanted) const {
  const auto refused = [](std::string why) {
    return failure{errc::invalid_argument, std::move(why)};
  };
  if (job_.own_store && (!wanted.add.empty() || !wanted.drain.empty()))
    return refused("cannot add or drain servers: the job has an own store, which is one server");
  if (job_.gossip && (!wanted.add.empty() || !wanted.drain.empty()))
    return refused("cannot add or drain servers: the job is gossip, and its values are in workers");
  auto staying = slots();
  for (const auto& server : wanted.add) {
    if (server.value >= servers_max)
      return refused(fmt::format("cannot add server {}: a job has servers 0 to {}", server.value,
                                 servers_max - 1));
    staying.insert(server);
  }
  const auto all = staying;
  for (const auto& server : state_.draining)
    if (std::ranges::find(wanted.add, server) == wanted.add.end())
      staying.erase(server);
  for (const auto& server : wanted.drain) {
    if (!all.contains(server))
      return refused(
        fmt::format("cannot drain server {}: the job has no such server", server.value));
    staying.erase(server);
  }
  if (wanted.drain.empty() || staying.size() >= job_.replicas)
    return {};
  if (staying.empty())
    return refused("cannot drain: no server would be left");
  return refused(fmt::format(
    "cannot drain: {} would be left, and each chain has {} replicas",
    staying.size() == 1 ? "one server" : fmt::format("{} servers", staying.size()), job_.replicas));
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
    reject_member(who, {}, effects);
  }
}

} // namespace troupe
