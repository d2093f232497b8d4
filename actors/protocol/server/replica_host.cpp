#include "actors/protocol/server/replica_host.hpp"

#include "actors/protocol/mutation.hpp"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

namespace troupe {

namespace {

bool takes_part(const chain_config& config, const member_id& who) {
  return config.joiner == who || std::ranges::find(config.members, who) != config.members.end();
}

bool starts_generation(const chain_config& config, const member_id& who) {
  return config.joiner != who && takes_part(config, who);
}

const chain_config& newest_of(const chain_metadata& record) {
  return record.proposed ? *record.proposed : record.active;
}

} // namespace

replica_host::replica_host(shard_id shard, replica_host_options options)
    : shard_(shard), options_(std::move(options)) {}

/// Returns whether the replica keeps states on disk. Each step changes all of a dense table, so an
/// old state of it makes no copy smaller.
bool replica_host::keeps_states() const {
  const auto& job = desired_->job;
  return options_.has_checkpoints && options_.has_disk
         && (is_durable() || (job.replicas > 1 && any_sparse(job)));
}

// -- desired state --

void replica_host::reconcile(const chain_metadata& record,
                             std::shared_ptr<const desired_server> desired, time_point now,
                             host_effects& effects) {
  assert(awaits_ == awaited::nothing);
  const bool other_workers = desired->workers != desired_->workers;
  record_ = record;
  desired_ = std::move(desired);
  const chain_config newest =
    mutated(mutation::active_generation_begun) ? record_.active : newest_of(record_);
  const member_id& self = options_.self;
  if (takes_part(record_.active, self) || takes_part(newest, self))
    unnamed_since_.reset();
  else if (!unnamed_since_)
    unnamed_since_ = now;
  const bool is_other = newest.generation != generation_;
  // True if it replaces an initial member of the generation, but was not one when it heard of it.
  const bool is_late = !is_other && newest.generation != record_.active.generation
                       && starts_generation(newest, self) && replica_
                       && !replica_->status().complete;
  // A server without a part in the generation to come seals the one before.
  if (is_late || (is_other && (takes_part(newest, self) || generation_.value == 0)))
    begin_generation(newest, now, effects);
  if (!replica_ || broken_)
    return;
  if (sending_ && sending_->second < newest.config)
    end_copy(effects);
  if (other_workers)
    effects.push_back(workers_effect{});
  replica_->renew(time_point{desired_->heard_ns});
  if (other_workers)
    replica_->set_workers(desired_->workers, now, decided_);
  replica_->reconcile(record_, now, decided_);
  was_told_ = true;
  advance(now, effects);
}

void replica_host::tick(time_point now, host_effects& effects) {
  free_if_unnamed(now, effects);
  if (!replica_ || broken_)
    return;
  replica_->tick(now, decided_);
  advance(now, effects);
}

/// Frees a state that no server can use. The host goes on as one that never had a part.
void replica_host::free_if_unnamed(time_point now, host_effects& effects) {
  const bool holds = broken_ || state() != nullptr;
  if (!holds || !unnamed_since_ || now - *unnamed_since_ < options_.unnamed_time
      || mutated(mutation::never_freed))
    return;
  begin_generation(chain_config{record_.active}, now, effects);
  reconcile(chain_metadata{record_}, desired_, now, effects);
}

/// Follows the parts of the desired state that need a state into which all steps are taken.
void replica_host::follow_desired(time_point now, host_effects& effects) {
  if (const auto early = std::exchange(early_request_, std::nullopt))
    send_copy(early->first, early->second, effects);
  const auto wanted = desired_->checkpoint;
  if (wanted <= std::max(checkpoint_cut_, checkpoint_failed_) || !options_.has_checkpoints)
    return;
  if (!replica_->leads())
    return save_for_later(effects);
  if (is_bsp_ && replica_->state()->bsp_clocks() > desired_->checkpoint_clock) {
    checkpoint_failed_ = wanted; // Other chains may have cut at that clock.
    checkpoint_failure_ = "the clock of the cut had passed when the order came";
    effects.push_back(report_effect{});
    return;
  }
  replica_->request_cut(wanted, desired_->checkpoint_clock, now, decided_);
}

// -- generations --

void replica_host::begin_generation(const chain_config& newest, time_point now,
                                    host_effects& effects) {
  assert(awaits_ == awaited::nothing && next_ == decided_.size());
  requests_.clear();
  pulls_due_.clear();
  effects.push_back(refuse_all_effect{{errc::rolled_back, "the server restores its partitions"}});
  apply_gathered(effects);
  add(former_, counters_of_state());
  replica_.reset();
  checksums_.clear();
  generation_ = newest.generation;
  job_generation_ = desired_->generation; // Saved, as `desired_` may change during a load.
  base_checkpoint_ = record_.base_checkpoint;
  lost_ = record_.active;
  ++load_;
  loading_ = loading::nothing;
  loaded_.clear();
  sending_.reset();
  copying_.reset();
  copied_.reset();
  part_ = {};
  failed_.reset();
  unreadable_ = 0;
  was_told_ = recovered_ = broken_ = copy_waits_ = false;
  is_bsp_ = goes_by_clocks(desired_->job);
  partitions_.clear();
  for (std::uint32_t p = 0; p < desired_->shard_of.size(); ++p)
    if (desired_->shard_of[p] == shard_)
      partitions_.push_back({p});
  effects.push_back(begin_generation_effect{generation_, base_checkpoint_, partitions_});
  if (starts_generation(newest, options_.self))
    return load(effects);
  begin({}, now);
  if (!keeps_states())
    return;
  copy_waits_ = true; // The local state may hold a part of the copy.
  effects.push_back(recall_effect{load_, partitions_});
}

/// Begins a chain whose servers have all ended with the local state of one of them, or with the
/// checkpoint if that state cannot be used.
void replica_host::load(host_effects& effects) {
  if (fingerprint(desired_->job) != options_.job)
    return give_up({errc::wrong_job, "the coordinator runs another job"}, 0, effects);
  if (!is_durable() || lost_.config == config_id{})
    return load_checkpoint(effects);
  if (!keeps_states())
    return load_instead("no local state fits this start", effects);
  loading_ = loading::recalling;
  effects.push_back(recall_effect{load_, partitions_});
}

void replica_host::load_checkpoint(host_effects& effects) {
  if (base_checkpoint_ == 0 || mutated(mutation::checkpoint_not_restored)) {
    loading_ = loading::filling;
    effects.push_back(fill_effect{load_, partitions_});
  } else if (!options_.has_checkpoints) {
    give_up({errc::io_failed, "there are no checkpoints to restore from"}, 0, effects);
  } else {
    loading_ = loading::restoring;
    effects.push_back(restore_effect{load_, base_checkpoint_, partitions_});
  }
}

void replica_host::load_instead(const std::string& why, host_effects& effects) {
  effects.push_back(
    note_effect{log_level::warn,
                why + "; it begins with "
                  + (base_checkpoint_ == 0 ? "initial values"
                                           : "checkpoint " + std::to_string(base_checkpoint_))});
  load_checkpoint(effects);
}

bool replica_host::awaits_load(std::uint64_t load) const {
  return load == load_ || mutated(mutation::late_load_taken);
}

void replica_host::recalled(std::uint64_t load, const result<std::optional<recalled_state>>& found,
                            host_effects& effects) {
  if (!awaits_load(load))
    return;
  const auto* kept =
    found && *found && (*found)->base.history == job_generation_ ? &**found : nullptr;
  if (replica_) { // It joins.
    copy_waits_ = false;
    if (kept != nullptr && kept->base.generation == generation_)
      effects.push_back(keep_past_effect{});
    return;
  }
  if (!found)
    return load_instead(found.error().text, effects);
  if (kept == nullptr)
    return load_instead("no local state of this history", effects);
  if (!kept_all(lost_, {options_.self.index}, kept->base) && !mutated(mutation::lost_not_compared))
    return load_instead("the local state lacks acknowledged updates", effects);
  loading_ = loading::replaying;
  recalled_entries_ = kept->entries;
  effects.push_back(replay_effect{load_});
}

void replica_host::loaded(std::uint64_t load, std::vector<shard_partition> held, time_point now,
                          host_effects& effects) {
  if (!awaits_load(load))
    return;
  if (loading_ == loading::replaying) {
    effects.push_back(note_effect{log_level::info, "recovered from its local state, "
                                                     + std::to_string(recalled_entries_)
                                                     + " entries of its log"});
    recovered_ = true;
  }
  loading_ = loading::nothing;
  loaded_ = std::move(held);
  if (writes_log() && !mutated(mutation::begun_before_saved))
    save({load_, save_purpose::starting, 0}, loaded_, effects);
  else
    begin_with_loaded(now, effects);
}

void replica_host::load_failed(std::uint64_t load, const failure& why, host_effects& effects) {
  if (!awaits_load(load))
    return;
  const auto what = std::exchange(loading_, loading::nothing);
  if (what == loading::replaying)
    return load_instead(why.text, effects);
  const bool is_rotten =
    what == loading::restoring && (why.code == errc::damaged || why.code == errc::io_failed);
  give_up(why, is_rotten ? base_checkpoint_ : 0, effects);
}

/// Reports that the generation cannot be begun; `bad_checkpoint`: because of that one, if not 0.
void replica_host::give_up(failure why, std::uint64_t bad_checkpoint, host_effects& effects) {
  failed_ = std::move(why);
  unreadable_ = bad_checkpoint;
  effects.push_back(report_effect{});
}

/// Makes the replica; one that holds nothing has to join.
void replica_host::begin(std::vector<shard_partition> held, time_point now) {
  auto how = options_.replica_options_of(desired_->job);
  if (desired_->job.replicas == 1)
    how.chain.lease_time = {};
  how.writes_log = writes_log();
  replica_.emplace(desired_->job, options_.self, job_generation_, generation_, held,
                   std::move(how));
  replica_->set_workers(desired_->workers, now, decided_);
}

void replica_host::begin_with_loaded(time_point now, host_effects& effects) {
  effects.push_back(adopt_effect{});
  begin(std::exchange(loaded_, {}), now);
  reconcile(chain_metadata{record_}, desired_, now, effects); // New while it loaded.
  effects.push_back(report_effect{});
}

/// Ends all work: it must not acknowledge a push that its log lacks.
void replica_host::break_off(const failure& why, host_effects& effects) {
  broken_ = true;
  was_told_ = false;
  decided_.clear();
  next_ = 0;
  requests_.clear();
  pulls_due_.clear();
  loaded_.clear();
  copied_.reset();
  effects.push_back(drop_copy_effect{});
  effects.push_back(refuse_all_effect{{errc::not_ready, "the server cannot write its log"}});
  give_up(why, 0, effects);
}

// -- requests --

result<void> replica_host::ready() const {
  if (state() == nullptr || broken_)
    return {errc::not_ready, "the server does not have these partitions"};
  return {};
}

void replica_host::ask(request_token token, request what, time_point now, host_effects& effects) {
  if (auto usable = ready(); !usable) {
    effects.push_back(refuse_effect{token, usable.error()});
    return;
  }
  auto& open = requests_.add(token.value, {std::move(what.pull), {}});
  if (what.push)
    replica_->push(token, std::make_shared<const push_request>(*std::move(what.push)), now,
                   decided_);
  else if (open.pull)
    pull(token, now);
  advance(now, effects);
}

void replica_host::count_refused() {
  if (replica_)
    replica_->count_refused();
}

void replica_host::verified(std::uint32_t crc32c) {
  if (checksums_.size() == checksums_max)
    checksums_.erase(checksums_.begin());
  checksums_.push_back({state()->version(), crc32c});
}

void replica_host::pull(request_token token, time_point now) {
  replica_->pull(token, *requests_.at(token.value).pull, now, decided_);
}

void replica_host::end_gathering(time_point now, host_effects& effects) {
  apply_gathered(effects);
  if (!broken_)
    advance(now, effects);
}

void replica_host::apply_gathered(host_effects& effects) {
  if (std::exchange(gathered_, 0) != 0)
    effects.push_back(apply_gathered_effect{});
}

// -- the effects of the replica --

/// Passes effects of the replica on, up to one whose outcome is awaited. A pull follows when its
/// push is done, and in the values.
void replica_host::advance(time_point now, host_effects& effects) {
  while (awaits_ == awaited::nothing && !broken_) {
    if (next_ < decided_.size()) {
      auto effect = std::move(decided_[next_++]);
      std::visit([&](auto& x) { run(x, now, effects); }, effect);
      continue;
    }
    decided_.clear();
    next_ = 0;
    if (gathered_ >= options_.apply_batch)
      apply_gathered(effects);
    if (gathered_ == 0 && !pulls_due_.empty()) {
      const auto token = pulls_due_.front();
      pulls_due_.pop_front();
      pull(token, now);
    } else if (std::exchange(was_told_, false)) {
      follow_desired(now, effects);
    } else {
      return;
    }
  }
}

void replica_host::run(step_effect& effect, time_point, host_effects& effects) {
  awaits_ = awaited::step;
  gathers_ = options_.apply_batch > 1 && !is_bsp_;
  if (gathers_)
    effects.push_back(gather_effect{std::move(effect.what), std::move(effect.pushes.front())});
  else
    effects.push_back(std::move(effect));
}

void replica_host::applied(time_point now, host_effects& effects) {
  assert(awaits_ == awaited::step);
  awaits_ = awaited::nothing;
  gathered_ += gathers_ ? 1 : 0;
  replica_->applied(now, decided_);
  advance(now, effects);
}

void replica_host::discarded(failure why, time_point now, host_effects& effects) {
  assert(awaits_ == awaited::step);
  awaits_ = awaited::nothing;
  replica_->discarded(std::move(why), now, decided_);
  advance(now, effects);
}

void replica_host::run(write_effect& effect, time_point, host_effects& effects) {
  awaits_ = awaited::write;
  effects.push_back(std::move(effect));
}

void replica_host::run(take_back_effect& effect, time_point, host_effects& effects) {
  awaits_ = awaited::write;
  effects.push_back(effect);
}

void replica_host::written(const result<void>& done, time_point now, host_effects& effects) {
  assert(awaits_ == awaited::write);
  awaits_ = awaited::nothing;
  if (!done)
    return break_off(done.error(), effects);
  advance(now, effects);
}

void replica_host::run(acknowledge_effect& effect, time_point, host_effects& effects) {
  auto& open = requests_.at(effect.push.value);
  open.pushed = effect.push_reply;
  effects.push_back(effect);
  if (open.pull) {
    pulls_due_.push_back(effect.push);
    return;
  }
  requests_.extract(effect.push.value);
  effects.push_back(receipt_effect{effect.push, effect.push_reply});
}

void replica_host::run(refuse_effect& effect, time_point, host_effects& effects) {
  const auto pushed = requests_.extract(effect.request.value)->pushed;
  // A worker that has its receipt is to ask for the values again, alone.
  if (pushed && reaction_to(effect.why.code) == reaction::retry)
    effects.push_back(receipt_effect{effect.request, *pushed});
  else
    effects.push_back(std::move(effect));
}

void replica_host::run(answer_effect& effect, time_point, host_effects& effects) {
  if (!mutated(mutation::read_without_gathered))
    apply_gathered(effects);
  auto open = *requests_.extract(effect.pull.value);
  effects.push_back(read_effect{effect.pull, open.pushed, *std::move(open.pull), effect.version,
                                std::move(effect.previous)});
}

void replica_host::run(replica_send_effect& effect, time_point, host_effects& effects) {
  effects.push_back(std::move(effect));
}

// -- saved states --

void replica_host::run(cut_effect& effect, time_point, host_effects& effects) {
  checkpoint_cut_ = kept_at_ = effect.checkpoint;
  if (!mutated(mutation::saved_without_gathered))
    apply_gathered(effects);
  save({load_, save_purpose::checkpoint, effect.checkpoint}, replica_->state()->partitions(),
       effects);
}

/// Saves a state for a later start, about as often as the head writes its part of a checkpoint.
void replica_host::save_for_later(host_effects& effects) {
  if (!keeps_states() || state() == nullptr || copy_waits_ || unnamed_since_
      || desired_->checkpoint <= kept_at_)
    return;
  kept_at_ = desired_->checkpoint;
  apply_gathered(effects);
  save({load_, save_purpose::later_start, 0}, state()->partitions(), effects);
}

void replica_host::save(save_id id, std::vector<shard_partition> partitions,
                        host_effects& effects) {
  save_effect what{.id = id, .partitions = std::move(partitions)};
  if (keeps_states()) {
    what.base = storage::base_id{0, job_generation_, generation_, recovered_};
    what.begins_log = is_durable();
    // A replica that takes up a bsp clock again needs the values of before it: so the log has to
    // have its entry.
    what.keeps_previous = is_bsp_ && is_durable();
  }
  if (what.begins_log && state() != nullptr && !mutated(mutation::log_lacks_unapplied))
    std::tie(what.first, what.log) = replica_->unapplied();
  awaits_ = awaited::write;
  effects.push_back(std::move(what));
}

void replica_host::saved(const save_id& id, const result<checkpoint_part>& done, time_point now,
                         host_effects& effects) {
  if (id.purpose == save_purpose::checkpoint && !done) {
    checkpoint_failed_ = id.checkpoint;
    checkpoint_failure_ = done.error().text;
    effects.push_back(report_effect{});
  }
  if (!awaits_load(id.load))
    return; // Those partitions are not its own any more.
  switch (id.purpose) {
  case save_purpose::starting:
    if (done)
      return begin_with_loaded(now, effects);
    return break_off(done.error(), effects);
  case save_purpose::joining:
    copy_waits_ = false;
    if (broken_ || !copied_)
      return;
    if (done)
      return install(now, effects);
    return break_off(done.error(), effects);
  case save_purpose::checkpoint:
    if (!done)
      return;
    part_ = *done;
    effects.push_back(report_effect{});
    return;
  case save_purpose::later_start: return; // Where it failed, the state saved before is still there.
  }
}

// -- other replicas --

void replica_host::receive(const member_id& from, const entry_message& what, time_point now,
                           host_effects& effects) {
  if (!replica_ || broken_)
    return;
  replica_->receive(from, what, now, decided_);
  advance(now, effects);
}

void replica_host::receive(const member_id& from, const committed_message& what, time_point now,
                           host_effects& effects) {
  if (!replica_ || broken_)
    return;
  replica_->receive(from, what, now, decided_);
  advance(now, effects);
}

void replica_host::receive(const member_id& from, const joined_message& what, time_point now,
                           host_effects& effects) {
  if (!replica_ || broken_)
    return;
  replica_->receive(from, what, now, decided_);
  if (sending_ == std::pair{from, what.config})
    end_copy(effects);
  advance(now, effects);
}

void replica_host::receive(const member_id& from, const copy_request& what, time_point now,
                           host_effects& effects) {
  if (!replica_ || broken_)
    return;
  send_copy(from, what, effects);
  advance(now, effects);
}

void replica_host::send_copy(const member_id& to, const copy_request& what, host_effects& effects) {
  if (sending_ == std::pair{to, what.config}) {
    effects.push_back(send_copy_effect{to, what, std::nullopt});
    return;
  }
  const auto index = replica_->copy_for(to, what.config);
  if (!index) {
    if (what.config > replica_->status().config)
      early_request_ = {to, what}; // Kept, as it is sent again only after copy_patience.
    return;
  }
  if (!mutated(mutation::copied_without_gathered))
    apply_gathered(effects);
  sending_ = {to, what.config};
  const auto& held = *replica_->state();
  effects.push_back(send_copy_effect{
    to, what, copied_state{what.config, *index, held.pull_clock_max(), held.partitions()}});
}

void replica_host::end_copy(host_effects& effects) {
  sending_.reset();
  effects.push_back(end_copy_effect{});
}

void replica_host::run(request_copy_effect& effect, time_point now, host_effects& effects) {
  if (copy_waits_)
    return replica_->copy_advanced(now);
  if (copying_ == effect.config && now - copy_asked_at_ < options_.copy_patience)
    return;
  copying_ = effect.config;
  copy_asked_at_ = now;
  effects.push_back(ask_copy_effect{effect.from, effect.config});
}

void replica_host::copy_advanced(time_point now) {
  if (!replica_ || broken_)
    return;
  copy_asked_at_ = now;
  replica_->copy_advanced(now);
}

void replica_host::copied(copied_state what, time_point now, host_effects& effects) {
  assert(awaits_copy(what.config));
  copying_.reset();
  if (!replica_ || broken_)
    return;
  copied_ = std::move(what);
  if (!writes_log() || mutated(mutation::joined_before_saved))
    return install(now, effects);
  copy_waits_ = true;
  save({load_, save_purpose::joining, 0}, copied_->partitions, effects);
}

void replica_host::install(time_point now, host_effects& effects) {
  apply_gathered(effects);
  const auto what = *std::exchange(copied_, std::nullopt);
  const auto counted = counters_of_state();
  if (replica_->install(what.config, what.index, what.clock_max, what.partitions, now, decided_)) {
    add(former_, counted);
    effects.push_back(adopt_effect{});
    effects.push_back(report_effect{});
  } else {
    effects.push_back(drop_copy_effect{});
  }
  advance(now, effects);
}

// -- reports --

server_counters replica_host::counters_of_state() const {
  return state() != nullptr ? state()->counters() : server_counters{};
}

server_counters replica_host::counters() const {
  auto all = former_;
  add(all, counters_of_state());
  return all;
}

chain_status replica_host::status() const {
  if (replica_)
    return replica_->status();
  return {generation_, {}, newest_of(record_).config, false, false};
}

replica_status replica_host::report() const {
  replica_status mine;
  mine.shard = shard_;
  mine.status = status();
  mine.failed = failed_;
  mine.unreadable = unreadable_;
  mine.recovered = recovered_;
  mine.part = part_;
  mine.checkpoint_failed = checkpoint_failed_;
  mine.checkpoint_failure = checkpoint_failure_;
  if (state() == nullptr)
    return mine;
  mine.version = state()->version();
  mine.checksums = checksums_;
  if (!replica_->is_head())
    return mine;
  mine.applied = state()->batches_applied();
  mine.clocks = state()->clocks();
  return mine;
}

} // namespace troupe
