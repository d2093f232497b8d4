// Decides which states of a replica are saved: its parts of checkpoints, and local states for the
// server alone. A plain state machine, part of a replica_host.
#pragma once

#include "actors/protocol/server/host_effects.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The entries of a replica's log that are not in its values, from index `first` on.
struct unapplied_entries {
  std::uint64_t first = 0;
  std::vector<log_entry> log;
};

/// Events: the checkpoint that the desired state asks for, the cut that the replica reached, and
/// the outcomes of saves. Effects: save_effect, report_effect.
///
/// Invariants:
/// (1) a checkpoint is cut at most once, and none after one with a larger number. Held by: assert
///     in cut().
/// (2) an outcome is taken only for a checkpoint that was cut. Held by: assert in saved().
/// (3) a local state is saved at most once for each checkpoint. Held by: assert in keep().
class state_saver {
public:
  /// `has_disk`: local states can be saved; needs `has_checkpoints`.
  state_saver(bool has_checkpoints, bool has_disk)
      : has_checkpoints_(has_checkpoints), has_disk_(has_disk) {}

  /// Returns whether local states are kept. Each step changes all of a dense table, so an old state
  /// of it makes no copy smaller.
  bool keeps_states(const job_spec& job) const;
  bool writes_log(const job_spec& job) const;

  /// Forgets the part of the generation before.
  void begin_generation() { part_ = {}; }

  // -- checkpoints --
  /// Returns whether the replica has not dealt with this checkpoint yet.
  bool is_due(std::uint64_t checkpoint) const;
  /// Reports that the clock of a cut had passed before it was asked for: other chains may have cut
  /// there.
  void is_late(std::uint64_t checkpoint, host_effects& effects);
  /// Notes a cut, which save() is to follow.
  void cut(std::uint64_t checkpoint);
  /// Returns whether a local state is to be saved for this checkpoint, as often as the head writes
  /// its part.
  bool is_kept_due(const job_spec& job, std::uint64_t checkpoint) const;
  /// Notes that a local state is saved for this checkpoint.
  void keep(std::uint64_t checkpoint);
  /// Takes the outcome of a cut. `is_present`: the cut's generation goes on.
  void saved(std::uint64_t checkpoint, const result<checkpoint_part>& done, bool is_present,
             host_effects& effects);

  /// Saves a state. `base`: its identity if the server keeps it. `unapplied`: begins its log.
  void save(const save_id& id, std::vector<shard_partition> partitions, const job_spec& job,
            const storage::base_id& base, unapplied_entries unapplied, host_effects& effects) const;

  // -- reports --
  const checkpoint_part& part() const { return part_; }
  std::uint64_t failed() const { return failed_; }
  const std::string& why_failed() const { return why_failed_; }

private:
  bool has_checkpoints_;
  bool has_disk_;
  std::uint64_t kept_ = 0; ///< The checkpoint for which a state was saved last.
  std::uint64_t cut_ = 0;
  std::uint64_t failed_ = 0; ///< The checkpoint that failed last.
  std::string why_failed_;
  checkpoint_part part_;
};

} // namespace troupe
