// Takes the events of the coordinator and moves it through its phases. The rest of the class is in
// coordinator_servers.cpp, _resize.cpp, _checkpoints.cpp, _workers.cpp, _stragglers.cpp and
// _orders.cpp.
#include "actors/protocol/coordinator/coordinator.hpp"

#include "actors/protocol/mutation.hpp"
#include "serialization/layout.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// A gap between two calls that only a suspended or starved coordinator explains.
constexpr auto frozen_min = 1000ms;
/// The job waits this long at its end for the checkpoint that a stop asks for.
constexpr auto stop_time = 10s;
constexpr auto last_retry_pause = 1000ms;
/// Pause between two searches for a checkpoint, when the first one failed.
constexpr auto search_pause = 1000ms;
/// Events kept for the observers.
constexpr std::size_t events_max = 50;
/// Members remembered, so that one event tells of each.
constexpr std::size_t unknown_members_max = 1000;
/// Observers at a time: one for each host that joined.
constexpr std::ptrdiff_t observers_max = 1000;
/// Missing members that one event names.
constexpr std::size_t named_members_max = 20;
/// Checkpoint numbers skipped for each earlier term. A number that was asked for and that no server
/// wrote left no trace; a server that still waits for that cut would confuse it with a new one.
constexpr std::uint64_t numbers_skipped = 8;

bool well_formed(const status_message& what) {
  switch (what.from.role) {
  case role::worker: return std::holds_alternative<worker_status>(what.body);
  case role::server: return std::holds_alternative<server_status>(what.body);
  case role::observer: return std::holds_alternative<observer_status>(what.body);
  case role::coordinator: break;
  }
  return false;
}

/// Drops the parts of the stored state that do not hold for this job.
storage::coordinator_state fitting(storage::coordinator_state stored, const job_spec& job,
                                   std::uint64_t fingerprint) {
  if (stored.job != fingerprint) {
    stored.servers.clear();
    stored.draining.clear();
  }
  if (stored.job != fingerprint || stored.chains.size() != job.chain_count())
    stored.chains.assign(job.chain_count(), {});
  return stored;
}

} // namespace

coordinator::coordinator(job_spec job, coordinator_options options,
                         storage::coordinator_state stored, std::uint64_t last_checkpoint,
                         time_point now, coordinator_effects& effects)
    : job_(std::move(job)), options_(options),
      state_(fitting(std::move(stored), job_, fingerprint(job_))), fingerprint_(fingerprint(job_)),
      bsp_(any_bsp(job_)), started_at_(now), last_call_(now), observed_at_(now),
      placement_({.replicas = job_.replicas,
                  .restart_from_one_replica = job_.durability == durability_mode::log},
                 state_.chains, state_.draining),
      chains_(job_.chain_count()), ledger_(job_, options.ledger),
      schedule_(job_, options.checkpointing, last_checkpoint + numbers_skipped * state_.term) {
  const bool known = state_.term > 0 && state_.job == fingerprint_;
  recovering_ = known;
  if (!known)
    state_.committed = 0;
  frozen_ = known && state_.rolling_back;
  if (!known || state_.chain_of.size() != job_.partitions)
    state_.chain_of.clear();
  if ((!known && state_.term > 0) || frozen_)
    ++state_.generation.value;
  state_.rolling_back = frozen_;
  if (options_.stragglers)
    detector_.emplace(*options_.stragglers);
  if (state_.term == 0 || !mutated(mutation::term_again))
    ++state_.term;
  state_.job = fingerprint_;
  state_.chain_of = make_partition_map(job_, job_.chain_count(), state_.chain_of);
  // All numbers begin with the term, so that none repeats a number of an earlier coordinator.
  next_lease_ = mutated(mutation::lease_ids_again) ? 1 : (state_.term << 32) + 1;
  for (std::size_t index = 0; index < chains_.size(); ++index) {
    auto& chain = chains_[index];
    const auto& record = placement_.records()[index];
    chain.started = known || options_.resume;
    chain.to_begin = frozen_;
    chain.restored = record.proposed && record.active.config != config_id{}
                     && record.proposed->generation != record.active.generation;
  }
  for (const auto& server : slots()) {
    gone_[server.value] = now;
    if (server.value >= job_.servers && placement_.is_empty(server))
      newcomers_.insert(server);
  }
  follow_records(now);
  persist(effects);
  if (recovering_)
    notify({event_kind::coordinator_restarted, {{"term", state_.term}}}, effects);
  if (options_.resume && options_.checkpoints && !known) { // Else when a server needs one.
    finding_ = true;
    effects.push_back(find_checkpoint_effect{unreadable_});
  }
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
    reject_member(what.from, name_of(what.from) + " is not part of this job", effects);
    return;
  }
  if (const auto old = members_.gives_way(what.from, now))
    lose(*old, "a newer one took its place", now, effects);
  switch (members_.hear(what, now)) {
  case membership::standing::buried: reject_member(what.from, "", effects); return;
  case membership::standing::refused:
    reject_member(what.from, name_of(what.from) + " is already running elsewhere", effects);
    return;
  case membership::standing::waiting:
  case membership::standing::repeated: return;
  case membership::standing::joined: welcome(what, now, effects); break;
  case membership::standing::news: break;
  }
  std::visit([&](const auto& body) { take(what.from, body, now, effects); }, what.body);
  decide(now, effects);
  answer(what.from, now, effects);
}

/// Returns whether a job can have this slot; a larger index is a mistake of its user.
bool coordinator::may_belong(const member_id& who) const {
  if (who.role != role::observer)
    return who.index < (who.role == role::server ? servers_max : workers_max);
  const auto& all = members_.all();
  return all.contains(who) || std::count_if(all.begin(), all.end(), [](const auto& entry) {
                                return entry.first.role == role::observer;
                              }) < observers_max;
}

void coordinator::tick(time_point now, coordinator_effects& effects) {
  notice_pause(now);
  for (const auto& who : members_.silent(now, options_.liveness_timeout)) {
    if (who.role == role::observer) // It holds nothing, so its death does not matter.
      members_.leave(who);
    else if (!recovering_ && !acts_in_a_chain(who))
      lose(who, "silent for " + std::to_string(options_.liveness_timeout.count()) + " ms", now,
           effects);
  }
  miss_servers(now, effects);
  if (search_again_at_ && now >= *search_again_at_ && phase_ != job_phase::stopped) {
    search_again_at_.reset();
    effects.push_back(find_checkpoint_effect{unreadable_});
  }
  audit_overdue(now, effects);
  detect_stragglers(now, effects);
  decide(now, effects);
}

void coordinator::disconnected(const member_id& who, time_point now,
                               coordinator_effects& /*effects*/) {
  members_.on_disconnect(who, now);
}

void coordinator::checkpoint_found(const storage::found& what, time_point now,
                                   coordinator_effects& effects) {
  if (!finding_)
    return;
  if (what.newest && std::ranges::find(unreadable_, what.newest->checkpoint) != unreadable_.end()) {
    effects.push_back(find_checkpoint_effect{unreadable_}); // A server has just failed to read it.
    return;
  }
  finding_ = search_failing_ = false;
  search_again_at_.reset();
  for (const auto& refused : what.refused)
    notify({event_kind::checkpoint_skipped, {{"reason", refused.text}}}, effects);
  // Only what was committed can be damaged.
  const bool had_one = state_.committed > 0
                       || std::any_of(what.refused.begin(), what.refused.end(),
                                      [](const auto& x) { return x.code == errc::damaged; });
  if (!what.newest && had_one) {
    auto why = what.refused.empty() ? "checkpoint " + std::to_string(state_.committed) + " is gone"
                                    : what.refused.front().text;
    for (std::size_t i = 1; i < what.refused.size(); ++i)
      why += "; " + what.refused[i].text;
    give_up("no checkpoint can be restored, and a restart would discard the training so far: "
              + why,
            now, effects);
    return;
  }
  if (!what.newest)
    notify({job_.durability == durability_mode::log ? event_kind::reading_logs
                                                    : event_kind::no_checkpoint,
            {}},
           effects);
  restore_ = what.newest ? what.newest->checkpoint : 0;
  if (*restore_ > state_.committed) {
    state_.committed = *restore_;
    persist(effects);
  }
  decide(now, effects);
}

void coordinator::search_failed(const failure& why, time_point now, coordinator_effects& effects) {
  if (!finding_)
    return;
  const auto text = "cannot look for checkpoints: " + why.text;
  if (reaction_to(why.code) != reaction::retry && why.code != errc::io_failed) {
    give_up(text, now, effects);
    return;
  }
  if (!std::exchange(search_failing_, true))
    notify({event_kind::checkpoint_search_failed, {{"reason", text}}}, effects);
  search_again_at_ = now + search_pause;
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
    restore_.reset();
    notify({event_kind::checkpoint_committed, {{"checkpoint", checkpoint}}}, effects);
  } else {
    checkpoint_failed(outcome.error().text, now, effects);
  }
  decide(now, effects);
}

/// Extends all deadlines if the coordinator itself did not run: silence then proves nothing.
void coordinator::notice_pause(time_point now) {
  if (now - last_call_ > frozen_min) {
    const auto gap = now - last_call_;
    members_.forgive(gap);
    observed_at_ += gap;
    for (auto& [index, server] : servers_)
      server.trusted_at += gap;
  }
  last_call_ = now;
}

void coordinator::welcome(const status_message& what, time_point now,
                          coordinator_effects& effects) {
  const auto& who = what.from;
  if (who.role == role::observer)
    return;
  const bool again = !seen_.insert({who.role, who.index}).second;
  if (phase_ != job_phase::stopped)
    notify(
      {again ? event_kind::member_rejoined : event_kind::member_joined, {{"member", name_of(who)}}},
      effects);
  if (who.role == role::worker) {
    auto& worker = workers_[who.index] = {};
    set_stage(worker, admission::out);
    worker.step_at = now;
    if (!first_worker_at_)
      first_worker_at_ = now;
    if (detector_) {
      straggler_events events;
      detector_->joined({who.index}, std::get<worker_status>(what.body).host, now, events);
      for (const auto& event : events)
        notify(event.what_happened, effects);
      worker.measure = measure_of({who.index});
    }
    return;
  }
  welcome_server(who, now, effects);
}

void coordinator::take(const member_id& from, const worker_status& body, time_point now,
                       coordinator_effects& effects) {
  auto& worker = workers_[from.index];
  worker.report = body;
  measure_pace(worker, now);
  hear_progress(worker, {from.index}, now);
  if (!body.failed.empty())
    fail(name_of(from) + ": " + body.failed, effects);
  if (frozen_ || body.generation != state_.generation)
    return; // These leases belong to another history.
  if (ledger_.progress({from.index}, body.leases, recovering_))
    outdate({from.index});
  // Only admitted workers get leases. Some of its pushes may not be applied yet, so servers are not
  // told that its clock is body.clock: the worker's own requests tell them.
  if (recovering_ && ledger_.holds_work({from.index})) {
    set_stage(worker, admission::admitted);
    worker.adopted = true;
    worker.start_clock = mutated(mutation::recovered_clock_told) ? body.clock : 0;
  }
}

void coordinator::take(const member_id& from, const server_status& body, time_point now,
                       coordinator_effects& effects) {
  for (const auto& mine : body.chains) {
    if (mine.chain.value >= chains_.size() || mine.marks.end().value > job_.batches()) {
      notify_once(from, {event_kind::member_inconsistent, {{"member", name_of(from)}}}, effects);
      return;
    }
  }
  if (!hear(from, body, now, effects))
    return;
  for (const auto& mine : body.chains)
    hear_of_chain(from, mine, now, effects);
}

void coordinator::take(const member_id& from, const observer_status& body, time_point now,
                       coordinator_effects& effects) {
  for (const auto& death : body.deaths) {
    if (!members_.buried(death.member))
      lose(death.member, "process ended", now, effects);
  }
  reconcile(from, body.resize, now, effects);
  if (from.index != 0) { // It joined later: it may leave, and the job goes on.
    if (!body.failed.empty())
      notify_once(from, {event_kind::launcher_failed, {{"reason", body.failed}}}, effects);
    return;
  }
  observed_at_ = now;
  done_ = done_ || body.done;
  stop_wanted_ = stop_wanted_ || body.stop;
  if (!body.failed.empty())
    fail(body.failed, effects);
}

// -- phases -------------------------------------------------------------------------------------

/// Updates all decisions from the present state. It may run at any time, any number of times.
void coordinator::decide(time_point now, coordinator_effects& effects) {
  end_recovery(now, effects);
  if (!recovering_ && phase_ != job_phase::stopped) {
    place_chains(now, effects);
    settle_newcomers(now, effects);
    release_drained(now, effects);
    compare_marks(now, effects);
    advance_phase(now, effects);
    run_checkpoints(now, effects);
    admit_workers();
    hand_out(available_workers(), now);
    copy_work(now);
    release_idle_workers();
    for (const auto worker : ledger_.take_shortened())
      outdate(worker);
  }
  refresh_view();
  if (!recovering_ || phase_ == job_phase::stopped)
    send_changed(now, effects);
}

void coordinator::end_recovery(time_point now, coordinator_effects& effects) {
  if (!recovering_)
    return;
  const auto is_here = [&](const auto& x) { return servers_.contains(x.first); };
  const bool all_here =
    workers_.size() >= workers_expected() && std::ranges::all_of(gone_, is_here);
  if (!all_here && now - started_at_ < options_.recovery_timeout)
    return;
  recovering_ = false;
  bool began = ledger_.cursor().value > 0;
  for (const auto& chain : chains_)
    began = began || chain.report.marks.end().value > 0;
  marks_changed_ = audit_needed_ = true;
  if (began)
    begin_training(now, effects);
}

void coordinator::begin_training(time_point now, coordinator_effects& effects) {
  phase_ = job_phase::training;
  training_since_ = now;
  last_checkpoint_ = 0;
  schedule_.restart(position(), now);
  notify({event_kind::training_started, {{"workers", workers_.size()}}}, effects);
}

void coordinator::advance_phase(time_point now, coordinator_effects& effects) {
  if (stop_wanted_ && !stop_deadline_)
    stop(now, effects);
  const bool settled = all_serving() && !frozen_;
  if (phase_ == job_phase::gathering && settled) {
    const bool waited = first_worker_at_ && now - *first_worker_at_ >= options_.gather_timeout;
    if (workers_.size() >= workers_expected() || (waited && !workers_.empty()))
      begin_training(now, effects);
  }
  if (phase_ == job_phase::gathering && now - started_at_ >= options_.gather_timeout)
    tell_who_is_missing(effects);
  const bool over = phase_ == job_phase::finishing || phase_ == job_phase::finished;
  if (over && !stop_deadline_ && settled && !ledger_.complete())
    begin_training(now, effects); // A server came back without the last batches.
  if (phase_ == job_phase::training && settled && ledger_.complete())
    phase_ = job_phase::finishing;
  if (phase_ == job_phase::finishing)
    finish(now, effects);
  if (phase_ == job_phase::finished && (done_ || now - observed_at_ > options_.liveness_timeout))
    phase_ = job_phase::stopped;
}

/// Takes the last checkpoint: of the whole work, or of the present state if the user asked to stop.
void coordinator::finish(time_point now, coordinator_effects& effects) {
  const bool saved = !options_.checkpoints || mutated(mutation::finished_unsaved)
                     || (last_checkpoint_ != 0 && state_.committed == last_checkpoint_);
  if (stop_deadline_ && (saved || now >= *stop_deadline_)) {
    phase_ = job_phase::stopped;
    return;
  }
  if (saved) {
    phase_ = job_phase::finished;
    observed_at_ = std::max(observed_at_, now);
    notify({event_kind::batches_applied, {{"batches", job_.batches()}}}, effects);
    return;
  }
  if (schedule_.cutting() && schedule_.number() != last_checkpoint_)
    schedule_.abandon(now); // It was cut before the end.
  if (!schedule_.idle() || !all_serving() || frozen_ || now < last_retry_at_)
    return;
  schedule_.begin(position(), now, false);
  last_checkpoint_ = schedule_.number();
  last_retry_at_ = now + last_retry_pause;
}

void coordinator::stop(time_point now, coordinator_effects& effects) {
  stop_deadline_ = now + stop_time;
  if (phase_ == job_phase::gathering || phase_ == job_phase::finished) {
    phase_ = job_phase::stopped;
    return;
  }
  notify({event_kind::stop_requested, {}}, effects);
  phase_ = job_phase::finishing;
}

void coordinator::fail(const std::string& why, coordinator_effects& effects) {
  if (phase_ == job_phase::stopped)
    return;
  phase_ = job_phase::stopped;
  failed_ = why;
  notify({event_kind::job_failed, {{"reason", why}}}, effects);
}

void coordinator::tell_who_is_missing(coordinator_effects& effects) {
  if (waiting_told_)
    return;
  waiting_told_ = true;
  std::vector<std::string> names;
  for (const auto& server : slots()) {
    if (!servers_.contains(server.value))
      names.push_back(name_of({role::server, server.value, {}}));
  }
  for (std::uint32_t index = 0; workers_.size() < workers_expected() && index < workers_expected();
       ++index) {
    if (!workers_.contains(index))
      names.push_back(name_of({role::worker, index, {}}));
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

void coordinator::notify(job_event what, coordinator_effects& effects) {
  events_.push_back(what);
  if (events_.size() > events_max)
    events_.pop_front();
  ++events_total_;
  effects.push_back(event_effect{std::move(what)});
}

void coordinator::persist(coordinator_effects& effects) {
  effects.push_back(persist_effect{state_});
}

} // namespace troupe
