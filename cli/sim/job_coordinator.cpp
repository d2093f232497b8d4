// The coordinator's shell: it carries out effects, and has a store and a directory of checkpoints.
#include "actors/protocol/mutation.hpp"
#include "cli/sim/job_world_parts.hpp"

namespace troupe::sim {

void job_world::start_coordinator(bool resume) {
  coordinator_ = std::make_unique<controller>();
  coordinator_->id = {role::coordinator, 0, next_incarnation()};
  coordinator_->rate = pick_rate();
  leases_now_.clear();
  told_done_.clear();
  refused_.clear();
  evicted_at_.reset();
  present_failed_ = false;
  note("the coordinator starts");
  const auto last = checkpoints_.empty() ? 0 : checkpoints_.rbegin()->first;
  coordinator_effects effects;
  coordinator_->decider =
    std::make_unique<coordinator>(job(), coordinator_options_of(options_, resume), persisted_, last,
                                  local(*coordinator_), effects);
  std::ranges::move(effects, std::back_inserter(coordinator_->waiting));
  carry_out_waiting();
  every(coordinator_->id, 20ms, [this] {
    coordinate(
      [&](coordinator_effects& x) { coordinator_->decider->tick(local(*coordinator_), x); });
    const auto phase = coordinator_->decider->phase();
    const auto before = std::exchange(last_phase_, phase);
    if (phase == job_phase::finished && before != phase)
      check_finished();
    if (phase == job_phase::stopped && before == job_phase::finishing && !any_failed_)
      check_stopped();
    if (phase == job_phase::stopped && before == job_phase::finished)
      check_dismissal();
    if (phase == job_phase::stopped)
      end_coordinator();
  });
}

/// Ends the coordinator when it has sent all members away, and the launcher has heard of that.
void job_world::end_coordinator() {
  if (!launcher_->sent_away || !launcher_->starting.empty() || !servers_.empty()
      || !workers_.empty())
    return;
  note("the coordinator ends");
  gone({role::coordinator, 0}, {});
}

void job_world::kill_coordinator() {
  if (!coordinator_)
    return;
  note("the coordinator is killed");
  // It is open whether the last writes were done.
  if (coordinator_->saving && chance(0.5))
    persist(*coordinator_->saving);
  for (const auto number : coordinator_->committing)
    if (chance(0.5))
      commit(number);
  coordinator_.reset();
  hear_end({role::coordinator, 0}, killed, {});
}

void job_world::coordinate(const std::function<void(coordinator_effects&)>& what) {
  coordinator_effects effects;
  what(effects);
  std::ranges::move(effects, std::back_inserter(coordinator_->waiting));
  carry_out_waiting();
}

/// Carries out effects in the order of their decisions. While it saves, no other effect is carried
/// out.
void job_world::carry_out_waiting() {
  if (std::exchange(coordinator_->carries_out, true))
    return;
  while (!coordinator_->waiting.empty() && !coordinator_->saving) {
    auto effect = std::move(coordinator_->waiting.front());
    coordinator_->waiting.pop_front();
    std::visit([this](auto& x) { run(x); }, effect);
  }
  coordinator_->carries_out = false;
  if (coordinator_->waiting.empty())
    check_open_batches();
}

/// Sends a status over a link, which exists while both ends live. An unheard status is lost with
/// it. The next coordinator may miss it too, if the sender is dead and replaced by then.
void job_world::send_up(process& by, decltype(status_message::body) body) {
  // Channels lead to every second worker.
  const auto rule = traits_of(by.id.role).listens;
  const bool listens =
    rule == listening::always || (rule == listening::when_joined && by.id.index % 2 == 1);
  status_message what{by.id, fingerprint_,    ++by.sequence,
                      0,     std::move(body), listens ? full_name(by.id) : ""};
  if (!coordinator_)
    return;
  post(
    place_of(by.id), coordinator_place,
    [this, to = coordinator_->id, what = std::make_shared<const status_message>(std::move(what))] {
      when_awake(to, now_, [this, what] { hear(*what); });
    });
}

void job_world::hear(const status_message& what) {
  if (auto* const by = find(what.from); by != nullptr && by->disturbed_until <= now_)
    by->disturbed_until.reset();
  if (const auto* const work = std::get_if<worker_status>(&what.body))
    for (const auto& each : work->leases)
      told_done_[{what.from, each.lease.id}].insert(each.done.begin(), each.done.end());
  for (const auto& who : {what.from, member_id{what.from.role, what.from.index, {}}}) {
    auto& paid = attention_.try_emplace(who, attention{now_}).first->second;
    if (now_ - paid.heard >= surely_heard)
      paid.missed_until = now_;
    paid.silent_max = std::max(paid.silent_max, now_ - paid.heard);
    paid.heard = now_;
  }
  coordinate([&](coordinator_effects& effects) {
    coordinator_->decider->receive(what, local(*coordinator_), effects);
  });
}

void job_world::run(send_effect& effect) {
  check_desired(effect.desired_state);
  auto what = std::make_shared<const desired_state>(std::move(effect.desired_state));
  post(coordinator_place, place_of(what->to), [this, what] {
    when_awake(what->to, now_, [this, what] {
      if (auto* const to_server = find_server(what->to))
        reconcile(*to_server, *what);
      else if (auto* const to_worker = find_worker(what->to))
        reconcile(*to_worker, *what);
      else
        reconcile_as_observer(*what);
    });
  });
}

void job_world::run(persist_effect& effect) {
  if (quiet_ || !chance(slow_store_)) {
    if (!mutated(mutation::sent_before_persisted) || chance(0.5))
      persist(effect.state);
    return;
  }
  ++tally_.slow_saves;
  const auto done = now_ + pick_ms(5, chance(0.7) ? 200 : 1500);
  coordinator_->saving = std::move(effect.state);
  coordinator_->paused_until = std::max(coordinator_->paused_until, done);
  at(done, [this, who = coordinator_->id] {
    if (!lives(who) || !coordinator_->saving)
      return;
    persist(*std::exchange(coordinator_->saving, std::nullopt));
    carry_out_waiting();
  });
}

void job_world::persist(const storage::coordinator_state& state) {
  const auto before = std::exchange(persisted_, state);
  check_records(before, state);
}

void job_world::run(event_effect& effect) {
  const auto text = text_of(effect.what);
  note(text);
  switch (effect.what.kind) {
  case event_kind::job_failed:
    require(may_fail(text) || launcher_->restarts.explains(text), "liveness: " + text);
    any_failed_ = present_failed_ = true;
    break;
  case event_kind::worker_demoted: ++tally_.backups; break;
  case event_kind::server_added: ++tally_.additions; break;
  case event_kind::server_drained: ++tally_.drains; break;
  case event_kind::stop_requested:
    before_stop_ = checkpoints_.empty() ? 0 : checkpoints_.rbegin()->first;
    break;
  case event_kind::restore_failed: refused_.insert(effect.what.number("checkpoint")); break;
  case event_kind::worker_evicted:
    ++tally_.evictions;
    check_eviction_told();
    break;
  default: break;
  }
}

// -- checkpoints --------------------------------------------------------------------------------

/// Returns the number of readable checkpoints. One has to stay readable: the job fails without one.
std::size_t job_world::good_checkpoints() const {
  return static_cast<std::size_t>(std::ranges::count_if(
    checkpoints_, [&](const auto& x) { return x.second.committed && !rotten_.contains(x.first); }));
}

bool job_world::is_unreadable(std::uint64_t checkpoint) {
  if (!quiet_ && good_checkpoints() > 1 && chance(unreadable_))
    rotten_.insert(checkpoint);
  return rotten_.contains(checkpoint);
}

void job_world::run(find_checkpoint_effect& effect) {
  const auto delay = pick_ms(5, !quiet_ && chance(slow_disk_) ? 2000 : 60);
  when_awake(coordinator_->id, now_ + delay, [this, unreadable = std::move(effect.unreadable)] {
    coordinate([&](coordinator_effects& effects) {
      if (!quiet_ && chance(part_failure_))
        coordinator_->decider->search_failed({errc::io_failed, "a disk that fails by chance"},
                                             local(*coordinator_), effects);
      else
        coordinator_->decider->checkpoint_found(find_checkpoint(unreadable), local(*coordinator_),
                                                effects);
    });
  });
}

storage::checkpoint_search_result
job_world::find_checkpoint(const std::vector<std::uint64_t>& passed_over) {
  storage::checkpoint_search_result what;
  // A damaged manifest is noticed here.
  bool damaged = !quiet_ && good_checkpoints() > 1 && chance(unreadable_);
  for (auto at = checkpoints_.rbegin(); at != checkpoints_.rend() && !what.newest; ++at) {
    if (!at->second.committed)
      continue;
    if (std::ranges::find(passed_over, at->first) != passed_over.end()
        || std::exchange(damaged, false)) {
      what.refused.push_back({errc::damaged, "checkpoint " + std::to_string(at->first)});
      continue;
    }
    what.newest.emplace();
    what.newest->checkpoint = at->first;
  }
  return what;
}

void job_world::commit(std::uint64_t checkpoint) {
  checkpoints_[checkpoint].committed = true;
  ++tally_.commits;
}

void job_world::run(commit_checkpoint_effect& effect) {
  check_parts(effect.manifest);
  const auto number = effect.manifest.checkpoint;
  checkpoints_[number].clock = effect.manifest.clock;
  const auto delay = pick_ms(5, !quiet_ && chance(slow_disk_) ? 2000 : 60);
  coordinator_->committing.insert(number);
  at(now_ + delay, [this, number, by = coordinator_->id] {
    if (!lives(by))
      return;
    coordinator_->committing.erase(number);
    const bool good = quiet_ || !chance(part_failure_);
    if (good)
      commit(number);
    when_awake(by, now_, [this, number, good] {
      coordinate([&](coordinator_effects& effects) {
        coordinator_->decider->checkpoint_committed(
          number, good ? result<void>{} : result<void>{errc::io_failed, "disk full"},
          local(*coordinator_), effects);
      });
    });
  });
}

} // namespace troupe::sim
