// Follows the state of every shard, starts a new generation of a lost one from a checkpoint, and
// compares the batches that shards have applied with the ledger. A plain state machine, part of the
// coordinator.
#pragma once

#include "actors/protocol/coordinator/checkpoint_schedule.hpp"
#include "actors/protocol/coordinator/coordinator_effects.hpp"
#include "actors/protocol/coordinator/ledger.hpp"
#include "actors/protocol/coordinator/placement.hpp"
#include "base/clock.hpp"
#include "serialization/messages.hpp"
#include "serialization/stored_state.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

/// The state of a shard beside its record in `placement`.
struct shard_state {
  std::optional<member_id> head; ///< Head of the active configuration, while it is alive.
  replica_status report;         ///< The newest status of the head.
  bool serving = false;          ///< The head has the state that it should have.
  bool started = false;          ///< It has a history: begin with a checkpoint.
  bool to_begin = false;         ///< Another generation of it has to begin: this one is over.
  bool restored = false;         ///< Its generation began with a checkpoint, and the rolled back
                                 ///< updates were not counted.
  batch_set lost_batches;        ///< Applied batches of the generation before.
  std::uint32_t lost_by = 0;     ///< The server that led that generation.
};

/// The parts of the coordinator that recovery changes too, for one call.
struct recovery_context {
  placement& servers;
  checkpoint_schedule& schedule;
  ledger& batches;
  storage::coordinator_state& state;
  event_journal& events;
  time_point now{0};
  coordinator_effects& effects;

  void persist() const { effects.push_back(persist_effect{state}); }
  void notify(job_event what) const { events.add(std::move(what), effects); }
};

struct recovery_options {
  bool checkpoints = true; ///< False: a shard can only begin with initial values.
  bool resume = false;     ///< A new job begins with the newest good checkpoint.
  /// A finished batch that is not applied on all servers after this time is given out again.
  std::chrono::milliseconds audit_grace{1000};
  /// Workers apply batches to copies of their own, of which the server hears later. So a finished
  /// batch is given out again only after its worker's death, and that time.
  bool has_copies = false;
};

/// Invariants:
/// (1) jobs with a bsp table: when a shard is lost, the job's generation grows and all shards begin
///     again with the same checkpoint; other jobs: only the lost shard does. Held by: check_step()
///     in cli/sim/job_checks.cpp.
/// (2) while shards roll back, the ledger is not compared with them; then it begins a new history.
///     Held by: assert in compare_applied(), audit_overdue().
/// (3) a generation begins with the newest good checkpoint, which is searched for first. A
///     checkpoint that a server could not read is never used again. Held by: assert in
///     begin_abandoned(); check_base_checkpoint() in cli/sim/job_desired.cpp.
/// (4) a head that changes, and a generation that ends, abandon the checkpoint that is being cut.
///     Held by: assert in abandon_cut(); check_parts() in cli/sim/job_checks.cpp.
class shard_recovery {
public:
  /// `records`: of an earlier coordinator of the job if `is_known`. `rolling_back`: a rollback had
  /// begun under it, and begins anew.
  shard_recovery(const job_spec& job, recovery_options options,
                 const std::vector<chain_metadata>& records, bool is_known, bool rolling_back);

  // -- events --

  /// Notes that the server is dead: it leads no shard any more.
  void on_server_lost(const member_id& who, const recovery_context& context);
  /// Takes the status of one replica.
  void hear(const member_id& from, const replica_status& what, const recovery_context& context);
  /// Updates the heads of shards after records have changed.
  void follow_records(const recovery_context& context);
  /// Searches for the newest good checkpoint.
  void search(const recovery_context& context);
  /// Takes the result of a search. Returns whether it answers the present search. Errors: no
  /// checkpoint can be used although there was one.
  result<bool> on_found(const storage::checkpoint_search_result& what,
                        const recovery_context& context);
  /// Searches again after 1 s if the error may pass (peer_lost, timed_out, io_failed). Other errors
  /// are returned.
  result<void> on_search_failed(const failure& why, const recovery_context& context);
  /// Repeats a search that failed, when it is time.
  void search_again(const recovery_context& context);
  /// Notes that another checkpoint may be the newest good one.
  void on_checkpoints_changed() { newest_checkpoint_.reset(); }

  // -- decisions --

  /// Starts generations of lost shards, and rolls all back. Returns whether records changed.
  bool begin_generations(const recovery_context& context);
  /// Settles the batches that all shards have applied, or queues missing ones after a loss.
  void compare_applied(const recovery_context& context);
  /// Compares all batches the next time, finished ones too: the ledger was rebuilt.
  void begin_audit() { applied_changed_ = audit_needed_ = true; }
  /// Queues finished batches that stay unapplied: their acknowledgement was lost with its server.
  void audit_overdue(bool may_audit, const recovery_context& context);

  // -- state --

  const std::vector<shard_state>& all() const { return shards_; }
  /// Returns whether all shards serve, in the present generation of the job.
  bool is_settled() const { return all_serving() && !rolling_back_; }
  /// Returns whether all shards go back to one clock (bsp), and some of them do not serve it yet.
  bool is_rolling_back() const { return rolling_back_; }
  /// Returns the progress of the shards, for the checkpoint schedule.
  checkpoint_schedule::position position(const ledger& batches) const;
  /// Returns the number of updates that the server has lost.
  std::uint64_t rolled_back_by(std::uint32_t server) const;

private:
  bool all_serving() const;
  void on_unreadable(const member_id& from, const replica_status& what,
                     const recovery_context& context);
  void abandon(std::uint32_t index, const recovery_context& context);
  void roll_all_back(std::uint32_t index, const recovery_context& context);
  bool begin_abandoned(const recovery_context& context);
  void begin_serving(std::uint32_t index, const recovery_context& context);
  void count_rolled_back(std::uint32_t index, const batch_set& before, const batch_set& after,
                         const recovery_context& context);
  void begin_history(const recovery_context& context);
  std::uint64_t clocks_of(const batch_set& applied) const;
  audit_trust trust(audit_trust other) const;
  batch_set applied_by_all() const;

  job_spec job_;
  recovery_options options_;
  bool by_clocks_ = false;
  std::vector<shard_state> shards_;
  std::map<std::uint32_t, std::uint64_t> rolled_back_; ///< Updates that were lost, by server.

  bool rolling_back_ = false;
  std::optional<std::uint32_t> rollback_cause_; ///< The shard whose loss rolled all back.
  batch_set acknowledged_;                      ///< Batches acknowledged before that.
  bool applied_changed_ = false;
  bool audit_needed_ = false; ///< Applied batches went back: finished batches cannot be trusted.
  time_point audited_at_{0};

  bool searching_ = false;
  bool search_failing_ = false; ///< An event told that the search fails.
  std::optional<time_point> search_again_at_;
  std::optional<std::uint64_t> newest_checkpoint_; ///< The newest good one, while that is certain.
  std::vector<std::uint64_t> unreadable_;          ///< Checkpoints that a server could not read.
};

} // namespace troupe
