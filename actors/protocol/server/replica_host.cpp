#include "actors/protocol/server/replica_host.hpp"

#include "actors/protocol/mutation.hpp"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <type_traits>
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
    : shard_(shard), options_(std::move(options)),
      loader_({options_.self.index}, options_.has_checkpoints), copies_(options_.copy_patience),
      saver_(options_.has_checkpoints, options_.has_disk) {}

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
  if (!acts())
    return;
  copies_.supersede(newest.config, effects);
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
  assert(awaits_ == awaited::nothing);
  free_if_unnamed(now, effects);
  if (!acts())
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
  if (const auto early = copies_.take_early())
    send_copy(early->first, early->second, effects);
  const auto wanted = desired_->checkpoint;
  if (!saver_.is_due(wanted))
    return;
  if (!replica_->leads())
    return save_for_later(effects);
  if (is_bsp_ && replica_->state()->bsp_clocks() > desired_->checkpoint_clock)
    return saver_.is_late(wanted, effects);
  replica_->request_cut(wanted, desired_->checkpoint_clock, now, decided_);
}

// -- generations --

void replica_host::begin_generation(const chain_config& newest, time_point now,
                                    host_effects& effects) {
  assert(awaits_ == awaited::nothing && next_ == decided_.size());
  requests_.refuse_all({errc::rolled_back, "the server restores its partitions"}, effects);
  apply_gathered(effects);
  add(former_, counters_of_state());
  replica_.reset();
  checksums_.clear();
  generation_ = newest.generation;
  job_generation_ = desired_->generation; // Saved, as `desired_` may change during a load.
  copies_.begin_generation();
  saver_.begin_generation();
  broken_.reset();
  was_told_ = false;
  is_bsp_ = goes_by_clocks(desired_->job);
  auto terms = terms_of_load();
  effects.push_back(begin_generation_effect{generation_, terms.base_checkpoint, terms.partitions});
  loader_.begin(std::move(terms));
  if (!starts_generation(newest, options_.self)) {
    begin({}, now);
    if (saver_.keeps_states(desired_->job))
      loader_.recall_past(effects);
  } else if (fingerprint(desired_->job) != options_.job) {
    loader_.give_up({errc::wrong_job, "the coordinator runs another job"}, effects);
  } else {
    loader_.load(effects);
  }
}

load_terms replica_host::terms_of_load() const {
  load_terms terms;
  terms.generation = generation_;
  terms.history = job_generation_;
  terms.base_checkpoint = record_.base_checkpoint;
  terms.lost = record_.active;
  for (std::uint32_t p = 0; p < desired_->shard_of.size(); ++p)
    if (desired_->shard_of[p] == shard_)
      terms.partitions.push_back({p});
  terms.is_durable = desired_->job.durability == durability_mode::log;
  terms.keeps_states = saver_.keeps_states(desired_->job);
  return terms;
}

void replica_host::recalled(std::uint64_t load, const result<std::optional<recalled_state>>& found,
                            host_effects& effects) {
  loader_.recalled(load, found, effects);
}

void replica_host::loaded(std::uint64_t load, std::vector<shard_partition> held, time_point now,
                          host_effects& effects) {
  if (!loader_.loaded(load, std::move(held), effects))
    return;
  if (writes_log() && !mutated(mutation::begun_before_saved))
    save({loader_.number(), save_purpose::starting, 0}, loader_.held(), effects);
  else
    begin_with_loaded(now, effects);
}

void replica_host::load_failed(std::uint64_t load, const failure& why, host_effects& effects) {
  loader_.failed(load, why, effects);
}

/// Makes the replica; one that holds nothing has to join.
void replica_host::begin(const std::vector<shard_partition>& held, time_point now) {
  auto how = options_.replica_options_of(desired_->job);
  if (desired_->job.replicas == 1)
    how.chain.lease_time = {};
  how.writes_log = writes_log();
  replica_.emplace(desired_->job, options_.self, job_generation_, generation_, held,
                   std::move(how));
  replica_->set_workers(desired_->workers, now, decided_);
}

void replica_host::begin_with_loaded(time_point now, host_effects& effects) {
  assert(!replica_ && !broken_);
  effects.push_back(settle_loaded_effect{true});
  begin(loader_.take(), now);
  reconcile(chain_metadata{record_}, desired_, now, effects); // New while it loaded.
  effects.push_back(report_effect{});
}

/// Ends all work: it must not acknowledge a push that its log lacks.
void replica_host::break_off(const failure& why, host_effects& effects) {
  broken_ = why;
  was_told_ = false;
  decided_.clear();
  next_ = 0;
  loader_.take();
  copies_.drop();
  effects.push_back(settle_loaded_effect{false});
  requests_.refuse_all({errc::not_ready, "the server cannot write its log"}, effects);
  effects.push_back(report_effect{});
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
  const bool pulls = what.pull.has_value();
  requests_.add(token, std::move(what.pull));
  if (what.push)
    replica_->push(token, std::make_shared<const push_request>(*std::move(what.push)), now,
                   decided_);
  else if (pulls)
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
  replica_->pull(token, requests_.pull_of(token), now, decided_);
}

void replica_host::end_gathering(time_point now, host_effects& effects) {
  assert(awaits_ == awaited::nothing);
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
    if (gathered_ == 0 && requests_.any_due())
      pull(requests_.take_due(), now);
    else if (std::exchange(was_told_, false))
      follow_desired(now, effects);
    else
      return;
  }
}

void replica_host::run(step_effect& effect, time_point, host_effects& effects) {
  effect.is_gathered = options_.apply_batch > 1 && !is_bsp_;
  awaits_ = effect.is_gathered ? awaited::gathered_step : awaited::step;
  effects.push_back(std::move(effect));
}

void replica_host::applied(time_point now, host_effects& effects) {
  assert(awaits_ == awaited::step || awaits_ == awaited::gathered_step);
  gathered_ += std::exchange(awaits_, awaited::nothing) == awaited::gathered_step ? 1 : 0;
  replica_->applied(now, decided_);
  advance(now, effects);
}

void replica_host::discarded(failure why, time_point now, host_effects& effects) {
  assert(awaits_ == awaited::step || awaits_ == awaited::gathered_step);
  awaits_ = awaited::nothing;
  replica_->discarded(std::move(why), now, decided_);
  advance(now, effects);
}

void replica_host::run(write_effect& effect, time_point, host_effects& effects) {
  awaits_ = awaited::write;
  effects.push_back(std::move(effect));
}

void replica_host::written(const result<void>& done, time_point now, host_effects& effects) {
  assert(awaits_ == awaited::write);
  awaits_ = awaited::nothing;
  if (!done)
    return break_off(done.error(), effects);
  advance(now, effects);
}

void replica_host::run(acknowledge_effect& effect, time_point, host_effects& effects) {
  requests_.acknowledged(effect, effects);
}

void replica_host::run(refuse_effect& effect, time_point, host_effects& effects) {
  requests_.refused(std::move(effect), effects);
}

void replica_host::run(answer_effect& effect, time_point, host_effects& effects) {
  if (!mutated(mutation::read_without_gathered))
    apply_gathered(effects);
  assert(gathered_ == 0);
  requests_.answered(std::move(effect), effects);
}

void replica_host::run(replica_send_effect& effect, time_point, host_effects& effects) {
  effects.push_back(std::move(effect));
}

// -- saved states --

void replica_host::run(cut_effect& effect, time_point, host_effects& effects) {
  saver_.cut(effect.checkpoint);
  if (!mutated(mutation::saved_without_gathered))
    apply_gathered(effects);
  save({loader_.number(), save_purpose::checkpoint, effect.checkpoint},
       replica_->state()->partitions(), effects);
}

/// Saves a state for a later start, about as often as the head writes its part of a checkpoint.
void replica_host::save_for_later(host_effects& effects) {
  if (state() == nullptr || holds_copy_up() || unnamed_since_
      || !saver_.is_kept_due(desired_->job, desired_->checkpoint))
    return;
  saver_.keep(desired_->checkpoint);
  apply_gathered(effects);
  save({loader_.number(), save_purpose::later_start, 0}, state()->partitions(), effects);
}

void replica_host::save(const save_id& id, std::vector<shard_partition> partitions,
                        host_effects& effects) {
  assert(!broken_);
  assert(gathered_ == 0 || id.purpose == save_purpose::starting
         || id.purpose == save_purpose::joining);
  unapplied_entries unapplied;
  if (writes_log() && state() != nullptr && !mutated(mutation::log_lacks_unapplied))
    std::tie(unapplied.first, unapplied.log) = replica_->unapplied();
  awaits_ = awaited::write;
  saver_.save(id, std::move(partitions), desired_->job,
              {0, job_generation_, generation_, recovered()}, std::move(unapplied), effects);
}

void replica_host::saved(const save_id& id, const result<checkpoint_part>& done, time_point now,
                         host_effects& effects) {
  const bool is_present = awaits_load(id.load);
  if (id.purpose == save_purpose::checkpoint)
    return saver_.saved(id.checkpoint, done, is_present, effects);
  if (!is_present || id.purpose == save_purpose::later_start)
    return; // If a later_start failed, the state saved before is still there.
  if (id.purpose == save_purpose::joining) {
    copies_.saved();
    if (broken_ || !copies_.held())
      return;
  }
  if (!done)
    return break_off(done.error(), effects);
  if (id.purpose == save_purpose::joining)
    return install(now, effects);
  begin_with_loaded(now, effects);
}

// -- other replicas --

template <class Message>
void replica_host::pass_on(const member_id& from, const Message& what, time_point now,
                           host_effects& effects) {
  if (!acts())
    return;
  replica_->receive(from, what, now, decided_);
  if constexpr (std::is_same_v<Message, joined_message>)
    copies_.joined(from, what.config, effects);
  advance(now, effects);
}

void replica_host::receive(const member_id& from, const entry_message& what, time_point now,
                           host_effects& effects) {
  pass_on(from, what, now, effects);
}

void replica_host::receive(const member_id& from, const committed_message& what, time_point now,
                           host_effects& effects) {
  pass_on(from, what, now, effects);
}

void replica_host::receive(const member_id& from, const joined_message& what, time_point now,
                           host_effects& effects) {
  pass_on(from, what, now, effects);
}

void replica_host::receive(const member_id& from, const copy_request& what, time_point now,
                           host_effects& effects) {
  if (!acts())
    return;
  send_copy(from, what, effects);
  advance(now, effects);
}

void replica_host::send_copy(const member_id& to, const copy_request& what, host_effects& effects) {
  if (copies_.send_part(to, what, effects))
    return;
  const auto index = replica_->copy_for(to, what.config);
  if (!index) {
    if (what.config > replica_->status().config)
      copies_.keep_early(to, what);
    return;
  }
  if (!mutated(mutation::copied_without_gathered))
    apply_gathered(effects);
  assert(gathered_ == 0);
  const auto& held = *replica_->state();
  copies_.send(to, what, {what.config, *index, held.pull_clock_max(), held.partitions()}, effects);
}

void replica_host::run(request_copy_effect& effect, time_point now, host_effects& effects) {
  if (holds_copy_up())
    return replica_->copy_advanced(now);
  copies_.ask(effect, now, effects);
}

void replica_host::copy_advanced(time_point now) {
  if (!acts())
    return;
  copies_.advanced(now);
  replica_->copy_advanced(now);
}

void replica_host::copied(copied_state what, time_point now, host_effects& effects) {
  assert(awaits_copy(what.config));
  if (!acts())
    return copies_.failed();
  const bool is_saved_first = writes_log() && !mutated(mutation::joined_before_saved);
  copies_.whole(std::move(what), is_saved_first);
  if (is_saved_first)
    save({loader_.number(), save_purpose::joining, 0}, copies_.held()->partitions, effects);
  else
    install(now, effects);
}

void replica_host::install(time_point now, host_effects& effects) {
  apply_gathered(effects);
  const auto what = copies_.take();
  const auto counted = counters_of_state();
  if (replica_->install(what.config, what.index, what.clock_max, what.partitions, now, decided_)) {
    add(former_, counted);
    effects.push_back(settle_loaded_effect{true});
    effects.push_back(report_effect{});
  } else {
    effects.push_back(settle_loaded_effect{false});
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
  mine.failed = broken_ ? broken_ : loader_.why_failed();
  mine.unreadable = loader_.unreadable();
  mine.recovered = recovered();
  mine.part = saver_.part();
  mine.checkpoint_failed = saver_.failed();
  mine.checkpoint_failure = saver_.why_failed();
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
