// Takes the events of the coordinator and moves it through its phases. Its decisions about servers
// are in coordinator_servers.cpp.
#include "actors/protocol/coordinator/coordinator.hpp"

#include "actors/protocol/mutation.hpp"
#include "serialization/layout.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// A gap between two calls that only a suspended or starved coordinator explains.
constexpr auto frozen_min = 1000ms;
/// The job waits this long at its end for the checkpoint that a stop asks for.
constexpr auto stop_time = 10s;
/// The job waits this long at its end for stop() of the program's actors.
constexpr auto actor_stop_time = 5s;
constexpr auto last_retry_pause = 1000ms;
/// Attempts at the last checkpoint before the job fails: most likely its disk is full.
constexpr std::uint32_t last_failures_max = 5;
/// Longer than the time between two copies of a peer, also on a busy machine.
constexpr auto gossip_audit_grace = 2000ms;
/// A status is answered if this time has passed since the last desired state, which may be lost.
constexpr auto repeat_after = 100ms;
/// Members remembered, so that one event tells of each.
constexpr std::size_t unknown_members_max = 1000;
/// Missing members that one event names.
constexpr std::size_t named_members_max = 20;
/// Checkpoint numbers skipped for each earlier term. A number that was asked for and that no server
/// wrote left no trace; a server that still waits for that cut would confuse it with a new one.
constexpr std::uint64_t numbers_skipped = 8;

bool well_formed(const status_message& what) {
  return std::visit([&](const auto& body) { return body.sender == what.from.role; }, what.body);
}

/// Checks that a member brings an address if its role always listens, and none if it never does.
/// Errors: invalid_argument.
result<void> check_address(const member_id& who, const std::string& address) {
  const auto contradicts = address.empty() ? listening::always : listening::never;
  if (traits_of(who.role).listens != contradicts)
    return {};
  const auto fault = address.empty()
                       ? " brings no address, but its role listens"
                       : " brings the address " + address + ", but its role does not listen";
  return failure{errc::invalid_argument, name_of(who) + fault + ": build all hosts alike"};
}

/// Drops the parts of the stored state that do not hold for this job.
storage::coordinator_state fitting(storage::coordinator_state stored, const job_spec& job) {
  const bool is_known = is_of(stored.job, job);
  if (!is_known) {
    stored.servers.clear();
    stored.draining.clear();
  }
  if (!is_known || stored.chains.size() != job.shard_count())
    stored.chains.assign(job.shard_count(), {});
  return stored;
}

recovery_options recovery_options_of(const job_spec& job, const coordinator_options& options) {
  recovery_options made{options.checkpoints, options.resume, options.audit_grace, job.gossip};
  if (job.gossip) // A collector hears of batches when a peer sends its copy.
    made.audit_grace = std::max<std::chrono::milliseconds>(made.audit_grace, gossip_audit_grace);
  return made;
}

ledger_options ledger_options_of(const job_spec& job, const coordinator_options& options,
                                 bool recovers) {
  auto made = options.ledger;
  made.unknown_is_finished = recovers && job.gossip;
  return made;
}

std::uint64_t next_term(const storage::coordinator_state& stored) {
  return stored.term == 0 || !mutated(mutation::term_again) ? stored.term + 1 : stored.term;
}

} // namespace

coordinator::coordinator(job_spec job, coordinator_options options,
                         storage::coordinator_state stored, std::uint64_t last_checkpoint,
                         time_point now, coordinator_effects& effects)
    : job_(std::move(job)), options_(options), fingerprint_(fingerprint(job_)),
      recovering_(stored.term > 0 && is_of(stored.job, job_)),
      state_(fitting(std::move(stored), job_)), started_at_(now), last_call_(now),
      observed_at_(now),
      placement_({.replicas = job_.replicas,
                  .restart_from_one_replica = job_.durability == durability_mode::log},
                 state_.chains, state_.draining),
      workers_(job_, ledger_options_of(job_, options, recovering_), options.lease_time,
               options.stragglers, next_term(state_)),
      shards_(job_, recovery_options_of(job_, options), state_.chains, recovering_,
              recovering_ && state_.rolling_back),
      schedule_(job_, options.checkpointing, last_checkpoint + numbers_skipped * state_.term) {
  const bool known = recovering_;
  if (!known)
    state_.committed = 0;
  if (!known || state_.shard_of.size() != job_.partitions)
    state_.shard_of.clear();
  if ((!known && state_.term > 0) || shards_.is_rolling_back())
    ++state_.generation.value;
  state_.rolling_back = shards_.is_rolling_back();
  state_.term = next_term(state_);
  state_.job = fingerprint_;
  state_.shard_of = make_partition_map(job_, job_.shard_count(), state_.shard_of);
  for (const auto& server : slots()) {
    gone_[server.value] = now;
    if (server.value >= job_.servers && placement_.is_empty(server))
      newcomers_.insert(server);
  }
  shards_.follow_records(recovery(now, effects));
  persist(effects);
  if (recovering_)
    notify({event_kind::coordinator_restarted, {{"term", state_.term}}}, effects);
  if (options_.resume && options_.checkpoints && !known) // Else when a server needs one.
    shards_.search(recovery(now, effects));
  refresh_view();
}

// -- events -------------------------------------------------------------------------------------

void coordinator::receive(const status_message& what, time_point now,
                          coordinator_effects& effects) {
  notice_pause(now);
  if (what.job != fingerprint_) {
    if (unknown_members_.size() < unknown_members_max && unknown_members_.insert(what.from).second)
      notify({event_kind::member_of_other_job, {{"member", name_of(what.from)}}}, effects);
    return;
  }
  if (!well_formed(what))
    return;
  if (!may_belong(what.from)) {
    reject_member(what.from, failure{errc::fenced, name_of(what.from) + " is not part of this job"},
                  effects);
    return;
  }
  if (const auto fits = check_address(what.from, what.address); !fits) {
    reject_member(what.from, fits.error(), effects);
    return;
  }
  if (const auto old = members_.gives_way(what.from, now))
    on_member_lost(*old, "a newer one took its place", now, effects);
  switch (members_.hear(what, now)) {
  case membership::standing::dead: reject_member(what.from, {}, effects); return;
  case membership::standing::refused:
    reject_member(what.from,
                  failure{errc::fenced, name_of(what.from) + " is already running elsewhere"},
                  effects);
    return;
  case membership::standing::waiting:
  case membership::standing::repeated: return;
  case membership::standing::joined: on_join(what, now, effects); break;
  case membership::standing::news: break;
  }
  std::visit([&](const auto& body) { take(what.from, body, now, effects); }, what.body);
  decide(now, effects);
  answer(what.from, now, effects);
}

/// Returns whether a job can have this slot; a larger index is a mistake of its user.
bool coordinator::may_belong(const member_id& who) const {
  const auto& row = traits_of(who.role);
  if (row.has_slots)
    return who.index < row.members_max;
  const auto& all = members_.all();
  return all.contains(who) || std::count_if(all.begin(), all.end(), [&](const auto& entry) {
                                return entry.first.role == who.role;
                              }) < row.members_max;
}

void coordinator::tick(time_point now, coordinator_effects& effects) {
  notice_pause(now);
  for (const auto& who : members_.silent(now, options_.liveness_timeout)) {
    if (!traits_of(who.role).has_slots) // Its death does not matter.
      members_.leave(who);
    else if (!recovering_ && !acts_in_a_chain(who))
      on_member_lost(who, "silent for " + std::to_string(options_.liveness_timeout.count()) + " ms",
                     now, effects);
  }
  detect_silent_servers(now, effects);
  const auto context = recovery(now, effects);
  if (phase_ != job_phase::stopped)
    shards_.search_again(context);
  shards_.audit_overdue(!recovering_ && phase_ != job_phase::stopped, context);
  detect_stragglers(now, effects);
  decide(now, effects);
}

void coordinator::disconnected(const member_id& who, time_point now,
                               coordinator_effects& /*effects*/) {
  members_.on_disconnect(who, now);
}

void coordinator::checkpoint_found(const storage::checkpoint_search_result& what, time_point now,
                                   coordinator_effects& effects) {
  const auto is_news = shards_.on_found(what, recovery(now, effects));
  if (!is_news)
    give_up(is_news.error().text, now, effects);
  else if (*is_news)
    decide(now, effects);
}

void coordinator::search_failed(const failure& why, time_point now, coordinator_effects& effects) {
  if (const auto done = shards_.on_search_failed(why, recovery(now, effects)); !done)
    give_up(done.error().text, now, effects);
}

void coordinator::give_up(const std::string& why, time_point now, coordinator_effects& effects) {
  fail(why, effects);
  decide(now, effects);
}

void coordinator::checkpoint_committed(std::uint64_t checkpoint, const result<void>& outcome,
                                       time_point now, coordinator_effects& effects) {
  if (!schedule_.committing() || checkpoint != schedule_.number())
    return;
  if (outcome) {
    schedule_.committed(now);
    state_.committed = checkpoint;
    persist(effects);
    last_failures_ = 0;
    shards_.on_checkpoints_changed();
    notify({event_kind::checkpoint_committed, {{"checkpoint", checkpoint}}}, effects);
  } else {
    checkpoint_failed(outcome.error().text, now, effects);
  }
  decide(now, effects);
}

void coordinator::scrub_failed(const failure& why, coordinator_effects& effects) {
  shards_.on_checkpoints_changed(); // It may be the newest one.
  notify(
    {why.code == errc::damaged ? event_kind::checkpoint_damaged : event_kind::checkpoint_unreadable,
     {{"reason", why.text}}},
    effects);
}

/// Extends all deadlines if the coordinator itself did not run: silence then proves nothing.
void coordinator::notice_pause(time_point now) {
  if (now - last_call_ > frozen_min) {
    const auto gap = now - last_call_;
    members_.extend_deadlines(gap);
    observed_at_ += gap;
    for (auto& [index, server] : servers_)
      server.trusted_at += gap;
  }
  last_call_ = now;
}

void coordinator::on_join(const status_message& what, time_point now,
                          coordinator_effects& effects) {
  const auto& who = what.from;
  if (!what.address.empty())
    ++placements_; // Others may connect to it.
  if (!traits_of(who.role).has_slots)
    return;
  const bool again = !seen_.insert({who.role, who.index, {}}).second;
  if (phase_ != job_phase::stopped)
    notify(
      {again ? event_kind::member_rejoined : event_kind::member_joined, {{"member", name_of(who)}}},
      effects);
  std::visit([&](const auto& body) { take_in(who, body, now, effects); }, what.body);
}

void coordinator::take_in(const member_id& who, const worker_status& body, time_point now,
                          coordinator_effects& effects) {
  if (!first_worker_at_)
    first_worker_at_ = now;
  for (const auto& event : workers_.on_join({who.index}, body.host, now))
    notify(event.what_happened, effects);
}

void coordinator::take_in(const member_id& /*who*/, const observer_status& /*body*/,
                          time_point /*now*/, coordinator_effects& /*effects*/) {}

void coordinator::take_in(const member_id& who, const actor_status& body, time_point /*now*/,
                          coordinator_effects& /*effects*/) {
  actors_[who.index] = {who, body};
}

void coordinator::on_member_lost(const member_id& who, const std::string& why, time_point now,
                                 coordinator_effects& effects) {
  const auto* const entry = members_.find(who);
  const bool was_listed = entry != nullptr && !entry->address.empty();
  if (!members_.mark_dead(who)) {
    if (who.role == role::server)
      on_server_lost(who, now, effects); // It may have been a member of an earlier coordinator.
    return;
  }
  if (was_listed)
    ++placements_; // Others may not connect to it any more.
  const auto tell = [&](event_kind kind, std::vector<event_field> more = {}) {
    job_event lost{kind, {{"member", name_of(who)}, {"reason", why}}};
    std::ranges::move(more, std::back_inserter(lost.fields));
    if (phase_ != job_phase::stopped)
      notify(std::move(lost), effects);
  };
  switch (who.role) {
  case role::worker:
    tell(event_kind::worker_lost, {{"batches", workers_.on_lost({who.index}, now)}});
    break;
  case role::server:
    tell(event_kind::server_lost);
    servers_.erase(who.index);
    gone_[who.index] = now;
    on_server_lost(who, now, effects);
    break;
  case role::actor:
    if (actors_.at(who.index).report.stopped)
      break; // It had nothing left to do, and its counters stay.
    tell(event_kind::actor_lost);
    actors_.erase(who.index);
    break;
  case role::coordinator:     // No member of itself.
  case role::observer: break; // The job loses nothing.
  }
}

void coordinator::detect_stragglers(time_point now, coordinator_effects& effects) {
  if (recovering_ || stop_deadline_ || phase_ == job_phase::stopped)
    return;
  for (const auto& event : workers_.detect_stragglers(now)) {
    notify(event.what_happened, effects);
    if (!workers_.carry_out(event))
      continue;
    // The detector keeps a successor of this incarnation waiting.
    const auto who = members_.all().at(member_of(*event.worker)).id;
    on_member_lost(who, "evicted", now, effects);
    assert(members_.find(who) == nullptr && !batches().holds_work({who.index}));
    reject_member(who, {}, effects);
  }
}

void coordinator::take(const member_id& from, const worker_status& body, time_point now,
                       coordinator_effects& effects) {
  workers_.hear({from.index}, body, now);
  if (body.failed)
    fail(name_of(from) + ": " + body.failed->text, effects);
  // Leases of an earlier generation belong to another history.
  if (!shards_.is_rolling_back() && body.generation == state_.generation)
    workers_.take_progress({from.index}, recovering_);
}

void coordinator::take(const member_id& from, const server_status& body, time_point now,
                       coordinator_effects& effects) {
  for (const auto& mine : body.chains) {
    if (mine.shard.value >= shards_.all().size() || mine.applied.end().value > job_.batches()) {
      notify_once(from, {event_kind::member_inconsistent, {{"member", name_of(from)}}}, effects);
      return;
    }
  }
  if (!hear(from, body, now, effects))
    return;
  const auto context = recovery(now, effects);
  for (const auto& mine : body.chains) {
    if (mine.unreadable == 0 && mine.failed)
      fail(name_of(from) + ": " + mine.failed->text, effects);
    if (const auto equal = checks_.hear(from, mine); !equal)
      fail(equal.error().text, effects);
    shards_.hear(from, mine, context);
  }
  if (shards_.is_rolling_back())
    workers_.reset_clocks();
}

void coordinator::take(const member_id& from, const observer_status& body, time_point now,
                       coordinator_effects& effects) {
  for (const auto& death : body.deaths) {
    if (!members_.is_dead(death.member))
      on_member_lost(death.member, "process ended", now, effects);
  }
  reconcile(from, body.resize, now, effects);
  if (from.index != 0) { // It joined later: it may leave, and the job goes on.
    if (body.failed)
      notify_once(from, {event_kind::launcher_failed, {{"reason", body.failed->text}}}, effects);
    return;
  }
  assert(from.role == role::observer && from.index == 0);
  observed_at_ = now;
  done_ = done_ || body.done;
  stop_wanted_ = stop_wanted_ || body.stop;
  if (body.failed)
    fail(body.failed->text, effects);
}

void coordinator::take(const member_id& from, const actor_status& body, time_point /*now*/,
                       coordinator_effects& effects) {
  actors_.at(from.index).report = body;
  if (body.failed)
    fail(name_of(from) + ": " + body.failed->text, effects);
}

// -- phases -------------------------------------------------------------------------------------

/// Updates all decisions from the present state. It may run at any time, any number of times.
void coordinator::decide(time_point now, coordinator_effects& effects) {
  end_recovery(now, effects);
  if (!recovering_ && phase_ != job_phase::stopped) {
    place_shards(now, effects);
    settle_newcomers(now, effects);
    release_drained(now, effects);
    shards_.compare_applied(recovery(now, effects));
    advance_phase(now, effects);
    run_checkpoints(now, effects);
    // Servers reach the clock of a last bsp cut by further work.
    const bool works_on = phase_ == job_phase::finishing && stop_deadline_ && goes_by_clocks(job_);
    const bool may_work = (phase_ == job_phase::training || works_on
                           || (stop_deadline_ && mutated(mutation::works_after_last_cut)))
                          && !shards_.is_rolling_back();
    workers_.decide({members_, shards_.all(), state_.generation, shards_.is_rolling_back(),
                     may_work, training_since_, now});
  }
  refresh_view();
  if (!recovering_ || phase_ == job_phase::stopped)
    send_changed(now, effects);
}

void coordinator::end_recovery(time_point now, coordinator_effects& effects) {
  if (!recovering_)
    return;
  const auto is_here = [&](const auto& x) { return servers_.contains(x.first); };
  // Actors too: a list without one would end lanes that go on.
  const bool all_here = workers_.all().size() >= workers_.expected()
                        && actors_.size() >= job_.actors && std::ranges::all_of(gone_, is_here);
  if (!all_here && now - started_at_ < options_.recovery_timeout)
    return;
  recovering_ = false;
  bool began = batches().cursor().value > 0;
  for (const auto& shard : shards_.all())
    began = began || shard.report.applied.end().value > 0;
  if (workers_.all().size() >= workers_.expected() && !workers_.any_has_worked())
    batches().redo_unknown();
  shards_.begin_audit();
  if (began)
    begin_training(now, effects);
}

void coordinator::begin_training(time_point now, coordinator_effects& effects) {
  phase_ = job_phase::training;
  training_since_ = now;
  last_checkpoint_ = 0;
  schedule_.restart(position(), now);
  notify({event_kind::training_started, {{"workers", workers_.all().size()}}}, effects);
}

void coordinator::advance_phase(time_point now, coordinator_effects& effects) {
  if (stop_wanted_ && !stop_deadline_)
    stop(now, effects);
  const bool settled = shards_.is_settled();
  if (phase_ == job_phase::gathering && settled) {
    const bool waited = first_worker_at_ && now - *first_worker_at_ >= options_.gather_timeout;
    const auto present = workers_.all().size();
    if (present >= workers_.expected() || (waited && present > 0))
      begin_training(now, effects);
  }
  if (phase_ == job_phase::gathering && now - started_at_ >= options_.gather_timeout)
    name_missing(effects);
  const bool over = phase_ == job_phase::finishing || phase_ == job_phase::finished;
  if (over && !stop_deadline_ && settled && !batches().complete())
    begin_training(now, effects); // A server came back without the last batches.
  if (phase_ == job_phase::training && settled && batches().complete()) {
    phase_ = job_phase::finishing;
    winds_down_since_ = now;
  }
  if (phase_ == job_phase::finishing)
    finish(now, effects);
  if (phase_ == job_phase::finished && (done_ || now - observed_at_ > options_.liveness_timeout))
    phase_ = job_phase::stopped;
}

/// Returns whether the stop() of an actor has not returned. The counts of its status are then those
/// of the result.
bool coordinator::waits_for_actors(time_point now) const {
  return now - winds_down_since_ < actor_stop_time
         && std::ranges::any_of(actors_, [](const auto& x) { return !x.second.report.stopped; });
}

/// Takes the last checkpoint: of the whole work, or of the present state if the user asked to stop.
void coordinator::finish(time_point now, coordinator_effects& effects) {
  const bool saved = !options_.checkpoints || mutated(mutation::finished_unsaved)
                     || (last_checkpoint_ != 0 && state_.committed == last_checkpoint_);
  const bool waits = waits_for_actors(now);
  if (stop_deadline_ && ((saved && !waits) || now >= *stop_deadline_)) {
    name_unstopped(effects);
    phase_ = job_phase::stopped;
    return;
  }
  if (saved && waits)
    return;
  if (saved) {
    name_unstopped(effects);
    assert(batches().complete());
    assert(!options_.checkpoints || state_.committed == last_checkpoint_);
    phase_ = job_phase::finished;
    observed_at_ = std::max(observed_at_, now);
    notify({event_kind::batches_applied, {{"batches", job_.batches()}}}, effects);
    return;
  }
  if (schedule_.cutting() && schedule_.number() != last_checkpoint_)
    schedule_.abandon(now); // It was cut before the end.
  if (!schedule_.idle() || !shards_.is_settled() || now < last_retry_at_)
    return;
  assert(!stop_deadline_ || goes_by_clocks(job_) || !batches().any_leased());
  schedule_.begin(position(), now, false);
  last_checkpoint_ = schedule_.number();
  last_retry_at_ = now + last_retry_pause;
}

/// Names the actors that the job does not wait for any longer.
void coordinator::name_unstopped(coordinator_effects& effects) {
  constexpr std::chrono::duration<double> seconds = actor_stop_time;
  for (const auto& [index, actor] : actors_)
    if (!actor.report.stopped)
      notify({event_kind::actor_unstopped,
              {{"member", name_of(actor.id)}, {"seconds", seconds.count()}}},
             effects);
}

void coordinator::stop(time_point now, coordinator_effects& effects) {
  stop_deadline_ = now + stop_time;
  if (phase_ == job_phase::gathering || phase_ == job_phase::finished) {
    phase_ = job_phase::stopped;
    return;
  }
  notify({event_kind::stop_requested, {}}, effects);
  phase_ = job_phase::finishing;
  winds_down_since_ = now;
  // A desired state of a server that asks for the last cut lists no worker any more, so the server
  // takes no push after that cut.
  if (!goes_by_clocks(job_) && !mutated(mutation::works_after_last_cut))
    workers_.take_all_leases();
}

void coordinator::fail(const std::string& why, coordinator_effects& effects) {
  if (phase_ == job_phase::stopped)
    return;
  phase_ = job_phase::stopped;
  failed_ = failure{errc::job_failed, why};
  notify({event_kind::job_failed, {{"reason", why}}}, effects);
}

void coordinator::name_missing(coordinator_effects& effects) {
  if (std::exchange(missing_named_, true))
    return;
  std::vector<std::string> names;
  for (const auto& server : slots()) {
    if (!servers_.contains(server.value))
      names.push_back(name_of(member_of(server)));
  }
  const auto& workers = workers_.all();
  const auto expected = workers.size() < workers_.expected() ? workers_.expected() : 0;
  for (std::uint32_t index = 0; index < expected; ++index) {
    if (!workers.contains(index))
      names.push_back(name_of(member_of(worker_id{index})));
  }
  if (names.empty())
    return;
  std::string text = names.front();
  for (std::size_t i = 1; i < std::min(names.size(), named_members_max); ++i)
    text += ", " + names[i];
  if (names.size() > named_members_max)
    text += " and " + std::to_string(names.size() - named_members_max) + " more";
  notify({event_kind::members_missing, {{"members", text}}}, effects);
}

void coordinator::notify_once(const member_id& about, job_event what,
                              coordinator_effects& effects) {
  if (notified_.size() < unknown_members_max && notified_.insert(about).second)
    notify(std::move(what), effects);
}

// -- checkpoints --------------------------------------------------------------------------------

void coordinator::run_checkpoints(time_point now, coordinator_effects& effects) {
  if (!options_.checkpoints)
    return;
  if (schedule_.cutting())
    collect_parts(now, effects);
  if (!shards_.is_settled())
    return;
  schedule_.observe(position(), now);
  if (phase_ == job_phase::training && schedule_.due(position(), now))
    schedule_.begin(position(), now, true);
}

void coordinator::collect_parts(time_point now, coordinator_effects& effects) {
  if (schedule_.overdue(now)) {
    checkpoint_failed("it took too long", now, effects);
    return;
  }
  const auto& shards = shards_.all();
  for (std::uint32_t index = 0; index < shards.size(); ++index) {
    const auto& report = shards[index].report;
    if (report.checkpoint_failed == schedule_.number()) {
      checkpoint_failed(report.checkpoint_failure, now, effects);
      return;
    }
    if (!shards[index].serving || report.part.shard.value != index || !schedule_.add(report.part))
      continue;
    effects.push_back(
      commit_checkpoint_effect{{schedule_.number(), job_, state_.generation, schedule_.clock(),
                                batches().cursor(), schedule_.parts()}});
    return;
  }
}

void coordinator::checkpoint_failed(const std::string& why, time_point now,
                                    coordinator_effects& effects) {
  const auto number = schedule_.number();
  schedule_.fail(now);
  notify({event_kind::checkpoint_failed, {{"checkpoint", number}, {"reason", why}}}, effects);
  if (number == last_checkpoint_ && ++last_failures_ >= last_failures_max && !stop_deadline_)
    fail("the last checkpoint cannot be written: " + why, effects);
}

// -- desired states -----------------------------------------------------------------------------

cluster_state coordinator::cluster() const {
  return {job_,    state_,     phase_,         failed_,
          view_,   members_,   workers_,       servers_,
          actors_, newcomers_, shards_,        schedule_,
          events_, work_end(), options_.index, options_.directory_mark};
}

/// Returns the batch before which the work of a stopped bsp job ends: the first one after its last
/// cut. Nullopt: there is no such batch.
std::optional<batch_id> coordinator::work_end() const {
  if (!stop_deadline_ || last_checkpoint_ == 0 || !goes_by_clocks(job_)
      || schedule_.clock() >= bsp_clock_count(job_))
    return std::nullopt;
  return bsp_first(job_, schedule_.clock());
}

recovery_context coordinator::recovery(time_point now, coordinator_effects& effects) {
  return {placement_, schedule_, batches(), state_, events_, now, effects};
}

void coordinator::refresh_view() {
  auto next = view_of(cluster());
  if (next == view_)
    return;
  view_ = std::move(next);
  // It begins with the term, as all numbers of a coordinator do.
  view_.config.value = std::max(view_.config.value + 1, (state_.term << 32) + 1);
}

void coordinator::send_changed(time_point now, coordinator_effects& effects) {
  const common_parts now_valid(phase_, view_.config, shards_.is_rolling_back(), schedule_.asked(),
                               schedule_.asked_clock(), events_.total(), placements_,
                               workers_.roster());
  const bool all = std::exchange(sent_common_, now_valid) != now_valid;
  const auto outdated = workers_.take_outdated();
  for (auto& [slot, record] : members_.all()) {
    const bool has_new_leases = slot.role == role::worker && outdated.contains({slot.index});
    if (record.sent.sequence > 0 && !has_new_leases && !all)
      continue;
    auto what = make_desired(record.id);
    if (record.sent.sequence == 0 || must_be_sent(what, record.sent))
      send(record, std::move(what), now, effects);
  }
}

void coordinator::answer(const member_id& who, time_point now, coordinator_effects& effects) {
  auto* record = members_.find(who);
  if (record == nullptr || (recovering_ && phase_ != job_phase::stopped))
    return;
  if (now - record->sent_at >= repeat_after)
    send(*record, make_desired(who), now, effects);
}

desired_state coordinator::make_desired(const member_id& who) {
  ++desired_made_;
  return desired_for(who, cluster());
}

void coordinator::send(member_entry& to, desired_state what, time_point now,
                       coordinator_effects& effects) {
  assert(!recovering_ || phase_ == job_phase::stopped);
  what.sequence = next_desired_++;
  assert(what.sequence > to.sent.sequence);
  assert(std::ranges::all_of(what.listeners, [&](const member_address& x) {
    const auto* known = members_.find(x.member);
    return known != nullptr && !x.address.empty()
           && traits_of(x.member.role).is_reached_by(what.to.role);
  }));
  to.sent = what;
  to.sent_at = now;
  effects.push_back(send_effect{std::move(what)});
}

/// Tells a process that is not a member to end.
void coordinator::reject_member(const member_id& who, std::optional<failure> why,
                                coordinator_effects& effects) {
  desired_state what{who, state_.term, next_desired_++, true, std::move(why), body_for(who.role)};
  effects.push_back(send_effect{std::move(what)});
}

} // namespace troupe
