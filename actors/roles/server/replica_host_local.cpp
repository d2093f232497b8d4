// Keeps states of a replica on its server's disk, to begin with them when the server starts again
// (storage/local_state.hpp). They are bases and, in jobs of durability `log`, the entries since.
#include "actors/open_requests.hpp"
#include "actors/roles/server/replica_host.hpp"
#include "actors/tables/log_replay.hpp"

#include "caf/stateful_actor.hpp"

#include <utility>

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::replica_past)

namespace troupe {

namespace {

/// Replays one log, then ends. It takes about as long as the log's steps took, and the server must
/// report meanwhile.
using replayer = caf::typed_actor<
  caf::replies_to<read_atom, job_spec, std::shared_ptr<storage::local_state>>::with<replica_past>>;

replayer::behavior_type run_replayer(replayer::pointer self,
                                     const std::shared_ptr<buffer_pool>& pool) {
  return {
    [self, pool](read_atom, const job_spec& job,
                 const std::shared_ptr<storage::local_state>& kept) -> caf::result<replica_past> {
      self->quit();
      auto past = replay_log(job, *kept, pool);
      if (!past)
        return to_caf(past.error());
      return *std::move(past);
    }};
}

} // namespace

/// Returns whether the replica keeps states on disk. Each step changes all of a dense table, so an
/// old state of it makes no copy smaller.
bool replica_host::keeps_states() const {
  const auto& job = desired_state_->job;
  return context_->storage && !context_->options.directory.empty()
         && (is_durable() || (job.replicas > 1 && any_sparse(job)));
}

// -- keeping --

/// Returns a cut. If the replica keeps states, the cut is its newest base, whose log begins here.
storage::cut replica_host::cut_of(std::uint64_t checkpoint, std::vector<partition_image> images) {
  storage::cut what{checkpoint, chain_, std::move(images)};
  if (!keeps_states())
    return what;
  const auto& options = context_->options;
  if (base_ == 0)
    base_ = storage::newest_kept(options.directory, {options.self.index}, chain_);
  what.base = storage::base_id{++base_, history_, generation_, recovered_};
  // Resuming a bsp clock needs the values before it, so the logs must have that clock's entry.
  what.bases_from = is_bsp_ && is_durable() && base_ > 1 ? base_ - 1 : base_;
  if (is_durable())
    begin_log();
  return what;
}

/// Begins the newest base's log with the entries that the values lack so far.
void replica_host::begin_log() {
  const auto& options = context_->options;
  auto log = storage::begin_log(options.directory, {options.self.index}, chain_, base_);
  if (!log)
    return break_off(log.error());
  log_.emplace(*std::move(log));
  if (!replica_ || replica_->state() == nullptr)
    return;
  auto [index, entries] = replica_->unapplied();
  for (const auto& entry : entries)
    if (auto written = log_->append(index++, entry); !written)
      return break_off(written.error());
}

/// Writes a base, then calls `then` unless another generation has begun meanwhile.
void replica_host::keep(std::vector<partition_image> images,
                        std::function<void(const result<void>&)> then) {
  auto what = cut_of(0, std::move(images));
  if (broken_)
    return;
  context_->self->request(context_->storage, storage_timeout, write_atom_v, std::move(what))
    .then(
      [this, then, during = loading_, alive = std::weak_ptr{alive_}](const checkpoint_part&) {
        if (!alive.expired() && during == loading_)
          then({});
      },
      [this, then, during = loading_, alive = std::weak_ptr{alive_}](const caf::error& why) {
        if (!alive.expired() && during == loading_)
          then(from_caf(why));
      });
}

/// Keeps a state for a later start, about as often as the head writes its part of a checkpoint.
void replica_host::keep_present() {
  if (!keeps_states() || replica_->state() == nullptr || copy_waits_ || unnamed_since_
      || desired_state_->checkpoint <= kept_at_)
    return;
  kept_at_ = desired_state_->checkpoint;
  apply_admitted();
  keep(values_->pin(replica_->state()->partitions()), [this](const result<void>& done) {
    if (!done) // The state kept before is still there.
      log(done.error().text);
    if (const auto& waits = context_->options.waits)
      waits("kept-" + std::to_string(chain_.value), done ? "" : done.error().text);
  });
}

void replica_host::run(write_effect& effect, replica_effects&) {
  if (auto written = log_->append(effect.index, effect.entry); !written)
    break_off(written.error());
}

void replica_host::run(take_back_effect& effect, replica_effects&) {
  if (auto written = log_->truncate(effect.last); !written)
    break_off(written.error());
}

/// Stops the replica, because it must not acknowledge entries that its log lacks.
void replica_host::break_off(const failure& why) {
  broken_ = true;
  fail_open({errc::not_ready, "the server cannot write its log"});
  give_up(why.text);
}

// -- beginning with a kept state --

/// Continues a chain whose servers have all ended with the state that this server kept. Falls back
/// to the checkpoint if the kept state is of no use.
void replica_host::recover(const job_spec& job, const partitions& here,
                           const chain_metadata& record) {
  const auto instead = [this, job, here,
                        base_checkpoint = record.base_checkpoint](const std::string& why) {
    log(why + "; it begins with "
        + (base_checkpoint == 0 ? "initial values"
                                : "checkpoint " + std::to_string(base_checkpoint)));
    load_from(job, here, base_checkpoint);
  };
  if (!keeps_states())
    return instead("no local state fits this start");
  read_kept(job, here,
            [this, job, instead, lost = record.active](local_ptr kept, const std::string& why) {
              if (!kept)
                return instead(why);
              if (!kept_all(lost, {context_->options.self.index}, kept->base))
                return instead("the local state lacks acknowledged updates");
              replay(job, std::move(kept), instead);
            });
}

void replica_host::replay(const job_spec& job, local_ptr kept,
                          std::function<void(const std::string&)> instead) {
  auto* self = context_->self;
  const auto by = context_->options.own_thread
                    ? self->spawn<caf::detached>(run_replayer, context_->pool)
                    : self->spawn(run_replayer, context_->pool);
  const auto entries = kept->log.size();
  self->request(by, storage_timeout, read_atom_v, job, std::move(kept))
    .then(
      [this, entries, number = loading_, alive = std::weak_ptr{alive_}](replica_past& past) {
        if (alive.expired() || number != loading_)
          return;
        log("recovered from its local state, " + std::to_string(entries) + " entries of its log");
        recovered_ = true;
        found(std::move(past.values), std::move(past.partitions));
      },
      [this, instead, number = loading_, alive = std::weak_ptr{alive_}](const caf::error& why) {
        if (!alive.expired() && number == loading_)
          instead(from_caf(why).text);
      });
}

/// Reads the kept state for `then`. If it has none of this job's history, `then` gets null and the
/// reason.
void replica_host::read_kept(const job_spec& job, const partitions& here,
                             std::function<void(local_ptr, const std::string&)> then) {
  context_->self->request(context_->storage, storage_timeout, read_atom_v, chain_, job, here)
    .then(
      [this, then, number = loading_, alive = std::weak_ptr{alive_}](local_ptr& kept) {
        if (alive.expired() || number != loading_)
          return;
        const bool fits = kept && kept->base.history == history_;
        then(fits ? std::move(kept) : nullptr, "no local state of this history");
      },
      [this, then, number = loading_, alive = std::weak_ptr{alive_}](const caf::error& why) {
        if (!alive.expired() && number == loading_)
          then(nullptr, from_caf(why).text);
      });
}

/// Reads the kept state of a joiner, which then asks for less of a copy.
void replica_host::read_own_past(const job_spec& job, const partitions& here) {
  if (!keeps_states())
    return;
  copy_waits_ = true;
  read_kept(job, here, [this](local_ptr kept, const std::string&) {
    copy_waits_ = false;
    if (kept && kept->base.generation == generation_)
      own_past_ = std::move(kept->images);
  });
}

/// Begins a generation with this state. A replica that writes a log first keeps the state as the
/// log's base.
void replica_host::found(std::shared_ptr<table_store> values, std::vector<shard_partition> held) {
  const auto begin_now = [this, values, held](const result<void>& kept) {
    if (!kept)
      return break_off(kept.error());
    begin(values, held);
    go_on();
  };
  if (writes_log())
    keep(values->pin(held), begin_now);
  else
    begin_now({});
}

void replica_host::log(const std::string& what) const {
  if (context_->options.log)
    context_->options.log("chain " + std::to_string(chain_.value) + ": " + what);
}

} // namespace troupe
