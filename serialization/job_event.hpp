// One thing that happened in a job: its kind, and the names and numbers that belong to it.
// Coordinators and launchers decide with kinds; a person reads the sentence that text_of() makes.
// docs/reference/events.md lists all kinds with their fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

/// Ordinals are on the wire: add new kinds at the end, and never remove one.
enum class event_kind : std::uint16_t {
  note,
  // The coordinator.
  coordinator_restarted,
  member_of_other_job,
  member_inconsistent,
  launcher_failed,
  member_joined,
  member_rejoined,
  members_missing,
  training_started,
  batches_applied,
  stop_requested,
  job_failed,
  worker_lost,
  server_lost,
  // Checkpoints and rollbacks.
  checkpoint_committed,
  checkpoint_failed,
  checkpoint_damaged,
  checkpoint_unreadable,
  checkpoint_skipped,
  checkpoint_search_failed,
  no_checkpoint,
  reading_logs,
  restore_failed,
  shard_recovered,
  shard_restored,
  shard_restarted,
  all_rolled_back,
  batches_recomputed,
  batches_missing,
  // Servers that come and go.
  server_added,
  server_placed,
  server_idle,
  server_draining,
  server_drained,
  drain_cancelled,
  server_removed,
  servers_disconnected,
  // Stragglers.
  worker_warned,
  worker_rebalanced,
  worker_demoted,
  worker_evicted,
  worker_held,
  worker_readmitted,
  worker_healthy,
  worker_stalled,
  worker_resumed,
  cluster_slow,
  cluster_healthy,
  // The launcher.
  run_started,
  run_ended,
  progress,
  evaluated,
  evaluation_failed,
  evaluation_not_finite,
  process_ended,
  process_hung,
  kill_injected,
  kill_missed,
  process_waits,
  coordinator_silent,
  coordinator_answers,
  coordinator_hung,
  coordinator_back,
  stopping,
  // Actors.
  actor_lost,
  actor_unstopped,
};
constexpr std::size_t event_kinds = static_cast<std::size_t>(event_kind::actor_unstopped) + 1;

using event_value = std::variant<std::uint64_t, double, std::string>;

struct event_field {
  std::string name;
  event_value value;
  bool operator==(const event_field&) const = default;
};

struct job_event {
  event_kind kind = event_kind::note;
  std::vector<event_field> fields; ///< No two have one name.

  bool operator==(const job_event&) const = default;

  /// Returns the value of the field, or null where the event has no such field.
  const event_value* find(std::string_view name) const;
  /// Returns the field's text; empty where there is none or it is a number.
  std::string_view text(std::string_view name) const;
  /// Returns the field's number; 0 where there is none or it is a text.
  std::uint64_t number(std::string_view name) const;
};

/// Returns a time for a person, such as "250 ms" or "30 s".
std::string time_text(double seconds);
/// Returns an event without a kind of its own: one line for a person.
job_event note_of(std::string text);

/// Returns the kind's name in events.jsonl, such as "worker_evicted".
std::string_view name_of(event_kind kind);
/// Returns the kind of that name. Nullopt: there is none.
std::optional<event_kind> event_kind_of(std::string_view name);
/// Returns the sentence for a person. Empty: the kind is for programs alone.
std::string text_of(const job_event& what);

} // namespace troupe
