#include "actors/protocol/server/state_saver.hpp"

#include <algorithm>
#include <cassert>

namespace troupe {

namespace {

bool is_durable(const job_spec& job) { return job.durability == durability_mode::log; }

} // namespace

bool state_saver::keeps_states(const job_spec& job) const {
  return has_checkpoints_ && has_disk_
         && (is_durable(job) || (job.replicas > 1 && any_sparse(job)));
}

bool state_saver::writes_log(const job_spec& job) const {
  return is_durable(job) && keeps_states(job);
}

// -- checkpoints --

bool state_saver::is_due(std::uint64_t checkpoint) const {
  return has_checkpoints_ && checkpoint > std::max(cut_, failed_);
}

void state_saver::is_late(std::uint64_t checkpoint, host_effects& effects) {
  failed_ = checkpoint;
  why_failed_ = "the clock of the cut had passed when the order came";
  effects.push_back(report_effect{});
}

void state_saver::cut(std::uint64_t checkpoint) {
  assert(checkpoint > cut_);
  cut_ = kept_ = checkpoint;
}

bool state_saver::is_kept_due(const job_spec& job, std::uint64_t checkpoint) const {
  return keeps_states(job) && checkpoint > kept_;
}

void state_saver::keep(std::uint64_t checkpoint) {
  assert(checkpoint > kept_);
  kept_ = checkpoint;
}

void state_saver::saved(std::uint64_t checkpoint, const result<checkpoint_part>& done,
                        bool is_present, host_effects& effects) {
  assert(checkpoint <= cut_);
  if (!done) {
    failed_ = checkpoint;
    why_failed_ = done.error().text;
  } else if (is_present) {
    part_ = *done;
  } else {
    return; // Those partitions are not its own any more.
  }
  effects.push_back(report_effect{});
}

void state_saver::save(const save_id& id, std::vector<shard_partition> partitions,
                       const job_spec& job, const storage::base_id& base,
                       unapplied_entries unapplied, host_effects& effects) const {
  save_effect what{.id = id, .partitions = std::move(partitions)};
  if (keeps_states(job)) {
    what.base = base;
    what.begins_log = is_durable(job);
    // A replica that takes up a bsp clock again needs the values of before it: so the log has to
    // have its entry.
    what.keeps_previous = goes_by_clocks(job) && is_durable(job);
  }
  what.first = unapplied.first;
  what.log = std::move(unapplied.log);
  effects.push_back(std::move(what));
}

} // namespace troupe
