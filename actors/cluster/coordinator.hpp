// What the coordinator decides: who is a member, who owns which partition, who works on what, when a
// checkpoint is cut, and when the job is over. A plain state machine. Members send their whole state
// (report), and get theirs as it should be (orders); so a lost message, a repeated one and a restart
// of the coordinator are all the same case: the next report.
#pragma once

#include "actors/cluster/ledger.hpp"
#include "actors/store/shard.hpp" // time_point
#include "serialization/messages.hpp"
#include "storage/checkpoint.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe {

struct coordinator_options {
  ledger_options ledger;
  /// A member that has not reported for so long is dead. Must exceed many report intervals (100 ms).
  std::chrono::milliseconds liveness_timeout{5000};
  /// Work begins when all workers of the job have come, or so long after the first one.
  std::chrono::milliseconds gather_timeout{15'000};
  /// After a restart: time for members to report before absence means anything.
  std::chrono::milliseconds recovery_timeout{3000};
  /// A finished batch whose mark is missing for so long is given out again.
  std::chrono::milliseconds audit_grace{1000};
  /// Time between the end of one checkpoint and the cut of the next; 0: by clocks or never.
  std::chrono::milliseconds checkpoint_interval{2000};
  /// Batches per worker slot between checkpoints; 0: by time.
  std::uint64_t checkpoint_clocks = 0;
  bool checkpoints = true; ///< False: only members' memory (threads without a directory, hogwild).
  bool resume = false;     ///< Start from the newest good checkpoint rather than from nothing.
};

// -- effects --
struct send_effect { troupe::orders orders; };
/// Find the newest good checkpoint, then call checkpoint_found().
struct find_checkpoint_effect {};
/// Commit this one (and apply retention), then call checkpoint_committed().
struct commit_checkpoint_effect { storage::manifest manifest; };
/// Store before anything else of this batch of effects is carried out.
struct persist_effect { storage::coordinator_state state; };
/// One line for the log and the display.
struct event_effect { std::string text; };

using coordinator_effect = std::variant<send_effect, find_checkpoint_effect,
                                        commit_checkpoint_effect, persist_effect, event_effect>;
using coordinator_effects = std::vector<coordinator_effect>;

/// Invariants:
/// (1) at most one incarnation of each (role, index) is a member; a dead one never comes back.
/// (2) a worker gets leases only after every serving server reported its incarnation as known.
/// (3) orders of one term carry growing sequences; what they say is a function of the state.
/// (4) jobs with a bsp table: when a server is lost, the generation grows and every server restores
///     the same checkpoint; other jobs: only the lost server's partitions are restored.
/// (5) the job is finished only when every batch is in the marks of every server, and (with
///     checkpoints) the last checkpoint was committed after that.
class coordinator {
public:
  /// `stored`: what the last coordinator of this directory persisted (term 0: nothing). The new one
  /// serves under stored.term + 1, and persists that first. `last_checkpoint`: largest number used.
  coordinator(job_spec job, coordinator_options options, storage::coordinator_state stored,
              std::uint64_t last_checkpoint, time_point now, coordinator_effects& effects);

  void receive(const report& what, time_point now, coordinator_effects& effects);
  /// Deadlines; call every 20 ms or so.
  void tick(time_point now, coordinator_effects& effects);
  /// The connection of a member ended: a hint, not a proof.
  void disconnected(const member_id& member, time_point now, coordinator_effects& effects);
  void checkpoint_found(const storage::found& what, time_point now, coordinator_effects& effects);
  void checkpoint_committed(std::uint64_t checkpoint, const result<void>& outcome, time_point now,
                            coordinator_effects& effects);

  job_phase phase() const;

  // The members are the implementer's to choose.
};

} // namespace troupe
