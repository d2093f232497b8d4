// Makes the state of a replica: loads it from a checkpoint, fills it, or copies it from another
// replica.
#include "actors/open_requests.hpp"
#include "actors/roles/server/replica_host.hpp"
#include "actors/tables/gradient_sum.hpp"
#include "base/clock.hpp"
#include "serialization/payload.hpp"

#include "caf/stateful_actor.hpp"
#include "fmt/core.h"

#include <algorithm>
#include <utility>

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(std::shared_ptr<troupe::table_store>)

namespace troupe {

namespace {

/// Time for which a replica that no configuration names keeps its state. A chain takes a silent
/// server back within seconds of its next status, and sends it only data that its past state lacks.
constexpr std::chrono::seconds unnamed_time{30};

/// Time after which missing parts of a copy are requested again. A part may be larger by one block.
const std::chrono::nanoseconds copy_patience =
  std::chrono::seconds{1} + time_for_payload(2 * copy_parts_ahead * copy_part_bytes);

/// Makes one store, then ends. Drawing the numbers of a large model takes many seconds, and the
/// server must report meanwhile.
using filler =
  caf::typed_actor<caf::replies_to<read_atom, job_spec,
                                   std::vector<partition_id>>::with<std::shared_ptr<table_store>>>;

filler::behavior_type run_filler(filler::pointer self, const std::shared_ptr<buffer_pool>& pool) {
  return {[self, pool](read_atom, const job_spec& job, const std::vector<partition_id>& here) {
    self->quit();
    return std::make_shared<table_store>(job, here, pool);
  }};
}

/// Returns the time that a push of all dense tables takes at 8 MB/s.
std::chrono::milliseconds time_for_entry(const job_spec& job) {
  std::uint64_t floats = 0;
  for (const auto& table : job.tables)
    floats += table.is_sparse() ? 0 : table.size();
  return std::chrono::duration_cast<std::chrono::milliseconds>(
    time_for_payload(floats * sizeof(float) / 8));
}

bool takes_part(const chain_config& config, const member_id& who) {
  return config.joiner == who
         || std::find(config.members.begin(), config.members.end(), who) != config.members.end();
}

bool starts_generation(const chain_config& config, const member_id& who) {
  return config.joiner != who && takes_part(config, who);
}

} // namespace

// -- desired state --

void replica_host::reconcile(const chain_metadata& record,
                             const std::shared_ptr<const desired_server>& desired_state) {
  const auto mine = desired_state; // Held, because desired_state_ may change below.
  const auto& what = *mine;
  const bool other_workers = what.workers != desired_state_->workers;
  record_ = record;
  desired_state_ = mine;
  const auto& newest = record.proposed ? *record.proposed : record.active;
  const auto& self = context_->options.self;
  if (takes_part(record.active, self) || takes_part(newest, self))
    unnamed_since_.reset();
  else if (!unnamed_since_)
    unnamed_since_ = now();
  const bool is_other = newest.generation != generation_;
  // True if it replaces a founder, but heard of this generation when it was no founder.
  const bool is_late = !is_other && newest.generation != record.active.generation
                       && starts_generation(newest, self) && replica_
                       && !replica_->status().complete;
  // A replica without a part in the next generation only seals the one before.
  if (is_late || (is_other && (takes_part(newest, self) || generation_.value == 0)))
    begin_generation(record, newest, what);
  if (!replica_ || broken_)
    return;
  if (outgoing_ && outgoing_->config < newest.config)
    outgoing_.reset();
  if (recorder_ && other_workers)
    recorder_->set_workers(now(), what.workers);
  decide([&](replica_effects& effects) {
    replica_->renew(time_point{what.heard_ns});
    if (other_workers)
      replica_->set_workers(what.workers, now(), effects);
    replica_->reconcile(record, now(), effects);
  });
  if (const auto early = std::exchange(early_request_, std::nullopt)) // All steps are done now.
    decide([&](replica_effects& effects) { take(early->first, early->second, effects); });
  reconcile_checkpoint();
}

/// Frees the state if no configuration has named this replica for `unnamed_time`. It goes on as if
/// it had never had a part.
void replica_host::free_if_unnamed() {
  if ((!values_ && !broken_) || !unnamed_since_ || now() - *unnamed_since_ < unnamed_time)
    return;
  const auto desired_state = desired_state_;
  begin_generation(record_, record_.active, *desired_state);
  reconcile(record_, desired_state);
}

void replica_host::reconcile_checkpoint() {
  const auto done = std::max(checkpoint_cut_, checkpoint_failed_);
  if (desired_state_->checkpoint <= done || !context_->storage)
    return;
  if (!replica_->leads())
    return keep_present();
  if (is_bsp_ && replica_->state()->bsp_clocks() > desired_state_->checkpoint_clock) {
    checkpoint_failed_ = desired_state_->checkpoint; // Other chains may have cut at that clock.
    checkpoint_failure_ = "the clock of the cut had passed when the order came";
    context_->report();
    return;
  }
  decide([&](replica_effects& effects) {
    replica_->request_cut(desired_state_->checkpoint, desired_state_->checkpoint_clock, now(),
                          effects);
  });
}

void replica_host::begin_generation(const chain_metadata& record, const chain_config& newest,
                                    const desired_server& what) {
  fail_open({errc::rolled_back, "the server restores its partitions"});
  apply_admitted();
  generation_ = newest.generation;
  history_ = what.generation; // Saved, as `desired_state_` may change during a load.
  ++loading_;
  former_.add(counters_of_state());
  replica_.reset();
  values_.reset();
  outgoing_.reset();
  incoming_.reset();
  part_ = {};
  failed_.clear();
  unreadable_ = 0;
  recovered_ = broken_ = copy_waits_ = false;
  own_past_.clear();
  is_bsp_ = any_bsp(what.job);
  partitions here;
  for (std::uint32_t p = 0; p < what.chain_of.size(); ++p)
    if (what.chain_of[p] == chain_)
      here.push_back({p});
  begin_record(here, record.base_checkpoint);
  if (starts_generation(newest, context_->options.self))
    load(what.job, here, record);
  else
    begin(nullptr, {});
  if (!values_ && replica_)
    read_own_past(what.job, here);
}

/// Begins the trace of a generation. If the replica takes part in it again, its file goes on.
void replica_host::begin_record(const partitions& here, std::uint64_t base_checkpoint) {
  const auto& options = context_->options;
  const storage::trace_header header{options.job,     chain_,       generation_,
                                     base_checkpoint, options.self, here};
  if (options.record && !(recorder_ && recorder_->header() == header))
    recorder_.emplace(*options.record, header);
}

// -- initial state of members --

void replica_host::load(const job_spec& job, const partitions& here, const chain_metadata& record) {
  if (fingerprint(job) != context_->options.job)
    give_up("the coordinator runs another job");
  else if (is_durable() && record.active.config != config_id{})
    recover(job, here, record);
  else
    load_from(job, here, record.base_checkpoint);
}

void replica_host::load_from(const job_spec& job, const partitions& here,
                             std::uint64_t base_checkpoint) {
  if (base_checkpoint == 0)
    fill(job, here);
  else if (!context_->storage)
    give_up("there are no checkpoints to restore from");
  else
    restore(job, here, base_checkpoint);
}

void replica_host::fill(const job_spec& job, const partitions& here) {
  auto* self = context_->self;
  const auto by = context_->options.own_thread
                    ? self->spawn<caf::detached>(run_filler, context_->pool)
                    : self->spawn(run_filler, context_->pool);
  self->request(by, storage_timeout, read_atom_v, job, here)
    .then(
      [this, here, tables = job.tables.size(), number = loading_,
       alive = std::weak_ptr{alive_}](std::shared_ptr<table_store>& filled) {
        if (alive.expired() || number != loading_)
          return;
        std::vector<shard_partition> fresh;
        for (const auto id : here)
          fresh.push_back({id, 0, std::vector<batch_set>(tables)});
        found(std::move(filled), std::move(fresh));
      },
      [this, number = loading_, alive = std::weak_ptr{alive_}](const caf::error&) {
        if (!alive.expired() && number == loading_)
          give_up("the partitions could not be filled");
      });
}

void replica_host::restore(const job_spec& job, const partitions& here,
                           std::uint64_t base_checkpoint) {
  context_->self
    ->request(context_->storage, storage_timeout, read_atom_v, base_checkpoint, job, here)
    .then(
      [this, job, base_checkpoint, number = loading_,
       alive = std::weak_ptr{alive_}](const std::vector<partition_image>& images) {
        if (!alive.expired() && number == loading_)
          restored(job, images, base_checkpoint);
      },
      [this, base_checkpoint, number = loading_,
       alive = std::weak_ptr{alive_}](const caf::error& error) {
        if (alive.expired() || number != loading_)
          return;
        const auto why = from_caf(error);
        const bool is_rotten = why.code == errc::damaged || why.code == errc::io_failed;
        give_up(why.text, is_rotten ? base_checkpoint : 0);
      });
}

void replica_host::restored(const job_spec& job, const std::vector<partition_image>& images,
                            std::uint64_t base_checkpoint) {
  auto read = table_store::restored(job, images, context_->pool);
  if (!read)
    return give_up(read.error().text, base_checkpoint);
  found(*std::move(read), marks_of(images));
}

/// Reports that the generation cannot begin. `bad_checkpoint`: the checkpoint at fault; 0: none.
void replica_host::give_up(std::string why, std::uint64_t bad_checkpoint) {
  failed_ = std::move(why);
  unreadable_ = bad_checkpoint;
  context_->report();
}

/// Begins the generation. A replica without values has to join.
void replica_host::begin(std::shared_ptr<table_store> values,
                         const std::vector<shard_partition>& held) {
  values_ = std::move(values);
  replica_options how;
  how.shard = context_->options.shard;
  how.chain = context_->options.chain;
  if (desired_state_->job.replicas == 1)
    how.chain.lease_time = {};
  how.chain.stalled_time += time_for_entry(desired_state_->job);
  how.writes_log = writes_log();
  how.add_up = [this](const std::vector<table_id>& tables, auto pushes) {
    return add_up(desired_state_->job, tables, pushes, *context_->pool);
  };
  replica_.emplace(desired_state_->job, context_->options.self, history_, generation_, held, how);
  decide([this](replica_effects& effects) {
    replica_->set_workers(desired_state_->workers, now(), effects);
  });
}

/// Applies desired state that came during the load.
void replica_host::go_on() {
  reconcile(record_, desired_state_);
  context_->report();
}

server_counters replica_host::counters_of_state() const {
  const auto* state = replica_ ? replica_->state() : nullptr;
  return state != nullptr ? state->counters() : server_counters{};
}

chain_status replica_host::status() const {
  if (replica_)
    return replica_->status();
  const auto& newest = record_.proposed ? *record_.proposed : record_.active;
  return {generation_, {}, newest.config, false, false};
}

server_counters replica_host::counters() const {
  auto all = former_;
  all.add(counters_of_state());
  all.bytes_sent = bytes_sent_;
  all.bytes_received = bytes_received_;
  return all;
}

replica_status replica_host::report() const {
  replica_status mine;
  mine.chain = chain_;
  mine.status = status();
  mine.failed = failed_;
  mine.unreadable = unreadable_;
  mine.recovered = recovered_;
  mine.part = part_;
  mine.checkpoint_failed = checkpoint_failed_;
  mine.checkpoint_failure = checkpoint_failure_;
  const auto* state = replica_ ? replica_->state() : nullptr;
  if (state == nullptr)
    return mine;
  mine.version = state->version();
  if (!replica_->is_head())
    return mine;
  mine.marks = state->marks();
  mine.clocks = state->clocks();
  return mine;
}

// -- copies from the tail --

void replica_host::run(request_copy_effect& effect, replica_effects&) {
  if (copy_waits_)
    return replica_->copy_advanced(now());
  const auto present = now();
  const bool is_known = incoming_ && incoming_->config() == effect.config;
  if (is_known && present - copy_asked_at_ < copy_patience)
    return;
  if (!is_known) {
    std::vector<partition_image> own;
    if (incoming_)
      own = std::move(*incoming_).give_up();
    else if (const auto* state = replica_->state())
      own = values_->pin(state->partitions());
    else
      own = std::exchange(own_past_, {});
    incoming_.emplace(effect.config, std::move(own));
  }
  incoming_->ask_again();
  ask_for_copy(effect.from);
}

void replica_host::ask_for_copy(const member_id& from) {
  copy_asked_at_ = now();
  for (auto& request : incoming_->ask())
    context_->send(from, {chain_, context_->options.self, std::move(request)});
}

void replica_host::take(const member_id& from, const copy_part& what, replica_effects& effects) {
  if (!incoming_ || !incoming_->add(what))
    return;
  bytes_received_ += payload_bytes(what);
  replica_->copy_advanced(now());
  if (incoming_->complete())
    install(from, effects);
  else
    ask_for_copy(from);
}

void replica_host::install(const member_id& from, replica_effects& effects) {
  const auto copy = *std::exchange(incoming_, std::nullopt);
  const auto images = copy.images();
  if (!images)
    return;
  std::uint64_t whole = 0;
  for (const auto& each : *images)
    whole += content_bytes(each);
  log(fmt::format("was sent {:.2f} of {:.2f} MB by server {}",
                  1e-6 * static_cast<double>(copy.bytes()), 1e-6 * static_cast<double>(whole),
                  from.index));
  auto read = table_store::restored(desired_state_->job, *images, context_->pool);
  if (!read)
    return; // The replica will ask for another copy.
  auto first = copy.first();
  first.image = {}; // Only its data about the whole copy is needed.
  if (!writes_log())
    return put_in_place(first, *std::move(read), marks_of(*images), effects);
  copy_waits_ = true;
  keep(*images, [this, first, copied = *read, held = marks_of(*images)](const result<void>& kept) {
    copy_waits_ = false;
    if (!kept)
      return break_off(kept.error());
    decide([&](replica_effects& more) { put_in_place(first, copied, held, more); });
  });
}

void replica_host::put_in_place(const copy_part& first, std::shared_ptr<table_store> copied,
                                const std::vector<shard_partition>& held,
                                replica_effects& effects) {
  apply_admitted();
  const auto counted = counters_of_state();
  if (!replica_->install(first.config, first.index, first.clock_max, held, now(), effects))
    return;
  former_.add(counted);
  values_ = std::move(copied);
  context_->report();
}

} // namespace troupe
