// Loads a replica's state: from a checkpoint, from initial values, or from the local state on its
// server's disk. That has bases and, in jobs of durability `log`, the later entries
// (storage/local_state.hpp).
#include "actors/roles/server/replica_runner.hpp"
#include "actors/detached.hpp"
#include "actors/tables/log_replay.hpp"

#include "caf/stateful_actor.hpp"

#include <utility>

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(std::shared_ptr<troupe::value_store>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::replica_past)

namespace troupe {

namespace {

using shared_images = std::shared_ptr<const std::vector<partition_image>>;

/// Makes one store, then ends. Drawing the numbers of a large model takes many seconds, as may a
/// keeper's start, and the server must report meanwhile.
using filler =
  caf::typed_actor<caf::replies_to<read_atom, job_spec,
                                   std::vector<partition_id>>::with<std::shared_ptr<value_store>>>;

filler::behavior_type run_filler(filler::pointer self, const std::shared_ptr<buffer_pool>& pool,
                                 const server_functions& functions, const given_values& given,
                                 const std::optional<keeper_options>& keeper,
                                 const shared_images& images) {
  return {[self, pool, functions, given, keeper, images](
            read_atom, const job_spec& job,
            const std::vector<partition_id>& here) -> caf::result<std::shared_ptr<value_store>> {
    self->quit();
    for (std::uint32_t i = 0; i < job.tables.size(); ++i)
      if (job.tables[i].values_checksum != 0 && !given.contains(i))
        return to_caf({errc::damaged, "no checkpoint has the first values of table '"
                                        + job.tables[i].name + "', which are from a file"});
    if (!keeper)
      return std::shared_ptr<value_store>{
        std::make_shared<table_store>(job, here, pool, functions, given)};
    auto made = keeper_store::made(job, *images, *keeper, pool);
    if (!made)
      return to_caf(made.error());
    return *std::move(made);
  }};
}

/// Replays one log, then ends. It takes about as long as the log's steps took, and the server must
/// report meanwhile.
using replayer = caf::typed_actor<
  caf::replies_to<read_atom, job_spec, std::shared_ptr<storage::local_state>>::with<replica_past>>;

replayer::behavior_type run_replayer(replayer::pointer self,
                                     const std::shared_ptr<buffer_pool>& pool,
                                     const server_functions& functions) {
  return {[self, pool, functions](
            read_atom, const job_spec& job,
            const std::shared_ptr<storage::local_state>& kept) -> caf::result<replica_past> {
    self->quit();
    auto past = replay_log(job, *kept, pool, functions);
    if (!past)
      return to_caf(past.error());
    return *std::move(past);
  }};
}

} // namespace

/// Opens the trace. A replica that takes part in a generation again continues the trace's file.
void replica_runner::run(begin_generation_effect& effect, host_effects&) {
  values_.reset();
  loaded_.reset();
  copy_images_.clear();
  outgoing_.clear();
  incoming_.reset();
  own_past_.clear();
  const auto& options = context_->options;
  const storage::trace_header header{options.job,       host_.shard(),
                                     effect.generation, effect.base_checkpoint,
                                     options.self,      effect.partitions};
  if (options.record && !(recorder_ && recorder_->header() == header))
    recorder_.emplace(*options.record, header);
}

void replica_runner::run(settle_loaded_effect& effect, host_effects&) {
  if (effect.is_adopted)
    values_ = std::move(loaded_);
  loaded_.reset();
  copy_images_.clear();
}

// -- loading --

/// Makes a store, a keeper's with these images, on a thread of its own.
void replica_runner::fill(std::uint64_t load, std::vector<shard_partition> held,
                          std::vector<partition_image> images) {
  auto* self = context_->self;
  const auto& options = context_->options;
  const auto saved = std::make_shared<const std::vector<partition_image>>(std::move(images));
  const auto by =
    options.own_thread
      ? spawn_detached_or_not(*self, run_filler, context_->pool, functions(), options.given,
                              options.keeper, saved)
      : self->spawn(run_filler, context_->pool, functions(), options.given, options.keeper, saved);
  std::vector<partition_id> partitions;
  for (const auto& x : held)
    partitions.push_back(x.partition);
  self->request(by, storage_timeout, read_atom_v, host_.desired().job, std::move(partitions))
    .then(while_alive<std::shared_ptr<value_store>>(
            [this, load, held = std::move(held)](std::shared_ptr<value_store>& filled) {
              loaded(load, std::move(filled), held);
            }),
          while_alive<const caf::error>([this, load](const caf::error& why) {
            const auto known = from_caf(why);
            load_failed(load, context_->options.keeper || known.code == errc::damaged
                                ? known
                                : failure{errc::not_ready, "the partitions could not be filled"});
          }));
}

void replica_runner::run(load_effect& effect, host_effects&) {
  if (effect.checkpoint == 0) {
    std::vector<shard_partition> fresh;
    for (const auto id : effect.partitions)
      fresh.push_back({id, 0, std::vector<batch_set>(host_.desired().job.tables.size())});
    return fill(effect.load, std::move(fresh), {});
  }
  context_->self
    ->request(context_->storage, storage_timeout, read_atom_v, effect.checkpoint,
              host_.desired().job, effect.partitions)
    .then(while_alive<const std::vector<partition_image>>(
            [this, load = effect.load](const std::vector<partition_image>& images) {
              restored(load, images);
            }),
          while_alive<const caf::error>([this, load = effect.load](const caf::error& why) {
            load_failed(load, from_caf(why));
          }));
}

void replica_runner::restored(std::uint64_t load, const std::vector<partition_image>& images) {
  if (!host_.awaits_load(load))
    return;
  if (context_->options.keeper)
    return fill(load, applied_of(images), images);
  auto read = table_store::restored(host_.desired().job, images, context_->pool, functions());
  if (!read)
    return load_failed(load, read.error());
  loaded(load, *std::move(read), applied_of(images));
}

void replica_runner::run(recall_effect& effect, host_effects&) {
  context_->self
    ->request(context_->storage, storage_timeout, read_atom_v, host_.shard(), host_.desired().job,
              effect.partitions)
    .then(while_alive<local_ptr>(
            [this, load = effect.load](local_ptr& kept) { recalled(load, std::move(kept)); }),
          while_alive<const caf::error>([this, load = effect.load](const caf::error& why) {
            decide([&](host_effects& effects) { host_.recalled(load, from_caf(why), effects); });
          }));
}

void replica_runner::recalled(std::uint64_t load, local_ptr kept) {
  std::optional<recalled_state> found;
  if (kept)
    found = recalled_state{kept->base, kept->log.size()};
  recalled_ = std::move(kept);
  decide([&](host_effects& effects) { host_.recalled(load, found, effects); });
  recalled_.reset();
}

void replica_runner::run(keep_past_effect&, host_effects&) {
  own_past_ = std::move(recalled_->images);
}

void replica_runner::run(replay_effect& effect, host_effects&) {
  auto* self = context_->self;
  const auto by = context_->options.own_thread
                    ? spawn_detached_or_not(*self, run_replayer, context_->pool, functions())
                    : self->spawn(run_replayer, context_->pool, functions());
  self
    ->request(by, storage_timeout, read_atom_v, host_.desired().job,
              std::exchange(recalled_, nullptr))
    .then(while_alive<replica_past>([this, load = effect.load](replica_past& past) {
            loaded(load, std::move(past.values), std::move(past.partitions));
          }),
          while_alive<const caf::error>([this, load = effect.load](const caf::error& why) {
            load_failed(load, from_caf(why));
          }));
}

void replica_runner::loaded(std::uint64_t load, std::shared_ptr<value_store> values,
                            std::vector<shard_partition> held) {
  if (!host_.awaits_load(load))
    return;
  loaded_ = std::move(values);
  decide([&](host_effects& effects) { host_.loaded(load, std::move(held), now(), effects); });
}

void replica_runner::load_failed(std::uint64_t load, const failure& why) {
  decide([&](host_effects& effects) { host_.load_failed(load, why, effects); });
}

// -- keeping --

void replica_runner::run(save_effect& effect, host_effects& more) {
  storage::cut what{effect.id.checkpoint, host_.shard(), {}};
  const failure* defect = nullptr;
  if (effect.id.purpose == save_purpose::joining)
    what.partitions = std::move(copy_images_);
  else {
    auto& store = effect.is_loaded() ? *loaded_ : *values_;
    what.partitions = store.pin(effect.partitions);
    defect = store.defect();
  }
  if (effect.base) {
    what.base = effect.base;
    what.base->sequence = next_base();
    what.bases_from = effect.keeps_previous && base_ > 1 ? base_ - 1 : base_;
  }
  const auto begun = effect.begins_log ? begin_log(effect) : result<void>{};
  host_.written(begun, now(), more);
  if (!begun)
    return;
  if (defect != nullptr) {
    log(log_level::warn, "no state is saved: " + defect->text);
    return host_.saved(effect.id, *defect, now(), more);
  }
  context_->self->request(context_->storage, storage_timeout, write_atom_v, std::move(what))
    .then(while_alive<const checkpoint_part>(
            [this, id = effect.id](const checkpoint_part& part) { saved(id, part); }),
          while_alive<const caf::error>(
            [this, id = effect.id](const caf::error& why) { saved(id, from_caf(why)); }));
}

std::uint64_t replica_runner::next_base() {
  const auto& options = context_->options;
  if (base_ == 0)
    base_ = storage::newest_kept(options.directory, {options.self.index}, host_.shard());
  return ++base_;
}

/// Begins a log with the entries that the state lacks.
result<void> replica_runner::begin_log(const save_effect& effect) {
  const auto& options = context_->options;
  auto begun = storage::begin_log(options.directory, {options.self.index}, host_.shard(), base_);
  if (!begun)
    return begun.error();
  log_.emplace(*std::move(begun));
  auto index = effect.first;
  for (const auto& entry : effect.log)
    if (auto written = log_->append(index++, entry); !written)
      return written;
  return {};
}

void replica_runner::saved(const save_id& id, const result<checkpoint_part>& done) {
  const bool is_of_use = host_.awaits_load(id.load);
  const std::string why = done ? "" : done.error().text;
  if (id.purpose == save_purpose::checkpoint && done)
    log(log_level::debug, "wrote its part of checkpoint " + std::to_string(id.checkpoint));
  else if (id.purpose == save_purpose::checkpoint) // The coordinator warns of the checkpoint.
    log(log_level::info, "no part of checkpoint " + std::to_string(id.checkpoint) + ": " + why);
  decide([&](host_effects& effects) { host_.saved(id, done, now(), effects); });
  if (id.purpose != save_purpose::later_start || !is_of_use)
    return;
  if (!done) // The state kept before is still there.
    log(log_level::warn, why);
  if (const auto& waits = context_->options.waits)
    waits({log_level::warn, "kept-" + std::to_string(host_.shard().value), {}, why});
}

void replica_runner::run(write_effect& effect, host_effects& more) {
  const auto done =
    effect.entry ? log_->append(effect.index, *effect.entry) : log_->truncate(effect.index - 1);
  host_.written(done, now(), more);
}

} // namespace troupe
