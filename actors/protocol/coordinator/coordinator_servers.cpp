// Decides the effects of a lost server, starts generations of chains, and makes the view.
#include "actors/protocol/coordinator/coordinator.hpp"

#include "actors/protocol/mutation.hpp"

#include <algorithm>

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// A server that acts in a chain is waited for this many times longer than others.
constexpr int patience_with_the_last = 6;

bool is_member(const chain_config& config, const member_id& who) {
  return std::find(config.members.begin(), config.members.end(), who) != config.members.end();
}

/// Returns whether the server cannot serve its chain, for a reason of its own.
bool has_failed(const replica_status& what) { return !what.failed.empty() && what.unreadable == 0; }

/// Returns whether the new generation's server had not kept all acknowledged pushes of the last
/// one.
bool has_partial_state(const chain_metadata& record, const replica_status& what) {
  return record.proposed && record.active.config != config_id{} && !what.recovered
         && what.status.complete && what.status.generation == record.proposed->generation
         && what.status.generation != record.active.generation;
}

} // namespace

// -- presence -----------------------------------------------------------------------------------

void coordinator::lose(const member_id& who, const std::string& why, time_point now,
                       coordinator_effects& effects) {
  if (!members_.mark_dead(who)) {
    if (who.role == role::server)
      lose_server(who, now); // It may have been a member of an earlier coordinator.
    return;
  }
  if (who.role == role::worker) {
    const auto before = ledger_.remaining();
    ledger_.lost({who.index});
    workers_.erase(who.index);
    ++roster_;
    if (detector_)
      detector_->left({who.index}, now);
    if (phase_ != job_phase::stopped)
      notify(
        {event_kind::worker_lost,
         {{"member", name_of(who)}, {"reason", why}, {"batches", ledger_.remaining() - before}}},
        effects);
    return;
  }
  if (phase_ != job_phase::stopped)
    notify({event_kind::server_lost, {{"member", name_of(who)}, {"reason", why}}}, effects);
  servers_.erase(who.index);
  gone_[who.index] = now;
  lose_server(who, now);
}

void coordinator::lose_server(const member_id& who, time_point now) {
  placement_.dead(who);
  for (auto& chain : chains_) {
    if (chain.head != who)
      continue;
    chain.head.reset();
    chain.lost_marks = chain.report.marks;
    chain.serving = false;
    if (schedule_.cutting())
      schedule_.abandon(now);
  }
}

/// Handles members of chains that do not report, or are not trusted.
void coordinator::miss_servers(time_point now, coordinator_effects& effects) {
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
      miss_unheard(who, now, effects);
    else if (found->second.id != who)
      lose_server(who, now); // Its successor is present.
    else if (now - found->second.trusted_at > options_.silence_timeout)
      placement_.silent(who);
  }
  for (const auto& who : members_.silent(now, patience_with_the_last * options_.liveness_timeout))
    if (who.role == role::server)
      lose(who, "silent for too long", now, effects);
}

/// Handles a server that only an earlier coordinator knew.
void coordinator::miss_unheard(const member_id& who, time_point now, effects_ref effects) {
  if (placement_.is_dead(who))
    return;
  placement_.silent(who);
  const auto patience = acts_in_a_chain(who) ? patience_with_the_last : 1;
  if (now - started_at_ <= patience * options_.liveness_timeout)
    return;
  notify({event_kind::server_lost,
          {{"member", name_of(who)}, {"reason", "silent since the coordinator restarted"}}},
         effects);
  if (mutated(mutation::given_up_not_sent_home))
    lose_server(who, now);
  else
    lose(who, "", now, effects); // If it comes after all, it is told to end.
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
  const auto is_founded = [](const chain_metadata& x) { return x.active.config != config_id{}; };
  const bool begun = std::ranges::all_of(placement_.records(), is_founded);
  std::set<server_id> all;
  for (const auto& [index, since] : gone_) {
    const bool came_before = begun || seen_.contains({role::server, index});
    if (!came_before || now - since < options_.return_timeout)
      all.insert({index});
  }
  return all;
}

/// Takes a server's status. Returns whether its chain reports count.
bool coordinator::hear(const member_id& from, const server_status& body, time_point now,
                       coordinator_effects& effects) {
  auto& server = servers_[from.index];
  if (server.report.address != body.address)
    ++placements_; // Others need its address.
  server.report = body;
  if (body.chains.size() < chains_.size())
    return true; // It does not know all chains yet; chains that wait for it go on waiting.
  gone_.erase(from.index);
  const auto failed = std::ranges::find_if(body.chains, has_failed);
  if (failed != body.chains.end() && can_be_missed(from)) {
    notify_once(
      from, {event_kind::server_removed, {{"member", name_of(from)}, {"reason", failed->failed}}},
      effects);
    return false; // As if it were silent.
  }
  std::vector<chain_status> statuses(chains_.size());
  for (const auto& mine : body.chains)
    statuses[mine.chain.value] = mine.status;
  placement_.heard(from, std::move(statuses));
  if (placement_.is_trusted(from)) {
    server.trusted_at = now;
    server.echo_ns = body.clock_ns;
  }
  return true;
}

/// Returns whether each of its chains has another member that may go on. A chain that is being
/// started has none.
bool coordinator::can_be_missed(const member_id& who) const {
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

void coordinator::hear_of_chain(const member_id& from, const replica_status& what, time_point now,
                                coordinator_effects& effects) {
  if (what.unreadable != 0)
    suspect(from, what, now, effects);
  else if (!what.failed.empty())
    fail(name_of(from) + ": " + what.failed, effects);
  auto& chain = chains_[what.chain.value];
  const auto& record = placement_.records()[what.chain.value];
  const auto& active = record.active;
  const auto& status = what.status;
  if (job_.durability == durability_mode::log && (!frozen_ || chain.to_begin)
      && has_partial_state(record, what))
    placement_.has_partial_state(what.chain.value, from);
  if (chain.to_begin || chain.head != from || status.generation != active.generation
      || status.config != active.config || !status.complete)
    return;
  marks_changed_ = marks_changed_ || chain.report.marks != what.marks;
  chain.report = what;
  schedule_.skip_to(std::max(what.part.checkpoint, what.checkpoint_failed));
  if (!chain.serving)
    begin_serving(what.chain.value, effects);
}

/// Drops a checkpoint that the server could not read; its chain begins with an older one.
void coordinator::suspect(const member_id& from, const replica_status& what, time_point now,
                          coordinator_effects& effects) {
  const auto& record = placement_.records()[what.chain.value];
  if (!record.proposed || record.proposed->generation != what.status.generation
      || record.base_checkpoint != what.unreadable || chains_[what.chain.value].to_begin)
    return; // It answers older orders.
  notify({event_kind::restore_failed,
          {{"member", name_of(from)}, {"checkpoint", what.unreadable}, {"reason", what.failed}}},
         effects);
  if (std::find(unreadable_.begin(), unreadable_.end(), what.unreadable) == unreadable_.end())
    if (!mutated(mutation::unreadable_forgotten))
      unreadable_.push_back(what.unreadable);
  abandon(what.chain.value, now, effects);
}

// -- generations --------------------------------------------------------------------------------

void coordinator::place_chains(time_point now, coordinator_effects& effects) {
  placement_.expect(expected_servers(now));
  for (const auto index : placement_.lost_chains()) {
    if (placement_.records()[index].active.config == config_id{})
      chains_[index].to_begin = true; // It never had a generation.
    else if (!chains_[index].to_begin) {
      chains_[index].lost_by = placement_.records()[index].active.members.front().index;
      abandon(index, now, effects);
    }
  }
  for (std::uint32_t index = 0; index < chains_.size(); ++index)
    if (bsp_ && !frozen_ && placement_.accepts_partial_state(index)) {
      // Before it acts: so no coordinator finds it acting while other chains have not gone back.
      abandon(index, now, effects);
      roll_all_back(index, now, effects);
    }
  bool changed = begin_chains(effects);
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
  follow_records(now);
}

/// Gives up the chain's state; another generation has to begin.
void coordinator::abandon(std::uint32_t index, time_point now, coordinator_effects& effects) {
  auto& chain = chains_[index];
  chain.to_begin = chain.started = true;
  chain.serving = false;
  restore_.reset();
  if (schedule_.cutting())
    schedule_.abandon(now);
  if (bsp_ && job_.durability == durability_mode::memory && !mutated(mutation::one_rolled_back))
    roll_all_back(index, now, effects);
}

/// In bsp, takes every chain back to the same clock, in a new generation, after a loss in chain
/// `index`.
void coordinator::roll_all_back(std::uint32_t index, time_point now, coordinator_effects& effects) {
  if (!std::exchange(frozen_, true)) {
    rollback_cause_ = index;
    acknowledged_ = ledger_.acknowledged();
    acknowledged_.unite(chains_[index].lost_marks);
    ++state_.generation.value;
    state_.rolling_back = true;
    persist(effects);
  }
  for (auto& chain : chains_) {
    chain.serving = false;
    chain.to_begin = chain.started = true;
  }
  for (auto& [unused, worker] : workers_)
    worker.start_clock = 0; // A worker's clock begins anew with a generation.
  if (schedule_.cutting())
    schedule_.abandon(now);
}

/// Returns whether records changed.
bool coordinator::begin_chains(coordinator_effects& effects) {
  if (!options_.checkpoints)
    restore_ = 0;
  bool changed = false;
  for (std::uint32_t index = 0; index < chains_.size(); ++index) {
    auto& chain = chains_[index];
    if (!chain.to_begin)
      continue;
    if (chain.started && !restore_) {
      // The checkpoint that is being committed may soon be the newest, and make an older one
      // disappear.
      if (!finding_ && !schedule_.committing()) {
        finding_ = true;
        effects.push_back(find_checkpoint_effect{unreadable_});
      }
      return changed;
    }
    if (!placement_.begin_again(index, chain.started ? *restore_ : 0))
      continue; // One of its servers is expected.
    chain.to_begin = false;
    chain.restored = chain.started;
    changed = true;
  }
  return changed;
}

/// Updates the heads of chains after records have changed.
void coordinator::follow_records(time_point now) {
  for (std::uint32_t index = 0; index < chains_.size(); ++index) {
    auto& chain = chains_[index];
    const auto& [active, base_checkpoint, proposed] = placement_.records()[index];
    const bool is_over = proposed && proposed->generation != active.generation;
    std::optional<member_id> head;
    if (!active.members.empty() && !is_over && !placement_.is_dead(active.members.front()))
      head = active.members.front();
    if (head == chain.head)
      continue;
    chain.head = head;
    chain.serving = false;
    if (schedule_.cutting())
      schedule_.abandon(now);
  }
}

void coordinator::begin_serving(std::uint32_t index, coordinator_effects& effects) {
  auto& chain = chains_[index];
  chain.serving = chain.started = true;
  marks_changed_ = true;
  if (!std::exchange(chain.restored, false))
    return;
  audit_needed_ = true;
  if (bsp_)
    return;
  auto before = ledger_.acknowledged();
  before.unite(chain.lost_marks);
  count_rolled_back(index, before, chain.report.marks, effects);
}

bool coordinator::all_serving() const {
  return std::ranges::all_of(chains_, [](const chain_state& chain) { return chain.serving; });
}

// -- the view -----------------------------------------------------------------------------------

void coordinator::refresh_view() {
  view next{view_.config, state_.generation, {}, state_.chain_of};
  const auto address_of = [&](const member_id& who) -> const std::string* {
    const auto found = servers_.find(who.index);
    return found != servers_.end() && found->second.id == who ? &found->second.report.address
                                                              : nullptr;
  };
  for (std::uint32_t index = 0; index < chains_.size(); ++index) {
    const auto& chain = chains_[index];
    auto& entry = next.chains.emplace_back(chain_entry{{index}, {}, {}, false});
    if (const auto* address = chain.head ? address_of(*chain.head) : nullptr)
      entry = {{index}, *chain.head, *address, chain.serving};
    const auto& members = placement_.records()[index].active.members;
    for (std::size_t i = 1; i < members.size(); ++i)
      if (const auto* address = address_of(members[i]))
        entry.others.push_back({members[i], *address});
  }
  if (next == view_)
    return;
  view_ = std::move(next);
  // It begins with the term, as all numbers of a coordinator do.
  view_.config.value = std::max(view_.config.value + 1, (state_.term << 32) + 1);
}

} // namespace troupe
