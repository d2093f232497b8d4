// Names mistakes that can be planted in the code, so that the simulator can show that it detects
// them. Only builds with TROUPE_MUTATIONS contain them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe {

enum class mutation : std::uint8_t {
  none,
  // chain.cpp
  append_unchecked,
  append_over_a_gap,
  append_while_sealed,
  commit_at_once,
  commit_while_sealed,
  nothing_sent_again,
  log_kept_when_removed,
  state_trusted_when_removed,
  copy_off_by_one,
  joiner_complete_without_copy,
  joiner_not_waited_for,
  synced_too_early,
  released_before_joined,
  read_without_lease,
  read_while_sealed,
  stall_unreported,
  // clock_table.cpp
  unheard_not_waited_for,
  // channel/channel_hub.cpp
  credit_twice,
  credit_ignored,
  bytes_ignored,
  old_parcel_taken,
  old_credit_counted,
  lost_before_last,
  gap_not_noticed,
  old_session_not_ended,
  late_open_taken,
  accepted_too_soon,
  not_connected_again,
  writable_forgotten,
  writable_without_room,
  lost_not_counted,
  // gossip/mixer.cpp
  meeting_not_renewed,
  echo_ignored,
  // gossip/each_step_mixer.cpp
  unshared_values_mixed,
  idle_turning,
  neighbour_not_awaited,
  lost_weight_not_kept,
  degree_of_now,
  // gossip/pairwise_mixer.cpp
  change_to_successor,
  change_added_twice,
  both_asked_wait,
  taken_answers,
  never_untaken,
  // cli/sim/gossip/gossip_world.cpp
  successor_keeps_copy,
  // pipeline/part_flow.cpp
  old_attempt_taken,
  attempt_kept_at_loss,
  greet_unheeded,
  ready_goes_on,
  drop_untold,
  drop_unsaid,
  line_not_awaited,
  part_below_not_awaited,
  applied_before_push,
  micro_left_out,
  micro_repeated,
  inputs_unbounded,
  old_result_counted,
  old_answer_counted,
  // coordinator/placement.cpp
  activate_before_new_seal,
  activate_before_old_seal,
  activate_incomplete,
  propose_from_proposal,
  joiner_promoted_unasked,
  restarted_counts_as_member,
  last_member_removed,
  lost_when_silent,
  found_twice,
  late_waited_for,
  late_counts_as_silent,
  stalled_left_alone,
  stalled_brought_together,
  move_without_sync,
  endless_moving,
  other_past_same_name,
  // coordinator/ledger.cpp
  lost_work_forgotten,
  audit_queues_nothing,
  // coordinator/worker_admission.cpp
  lease_ids_again,
  recovered_clock_told,
  promise_ignored,
  // coordinator/desired_states.cpp
  told_of_all_members,
  // coordinator/coordinator.cpp
  term_again,
  finished_unsaved,
  works_after_last_cut,
  // coordinator/coordinator_servers.cpp
  last_one_given_up,
  given_up_not_rejected,
  drained_too_soon,
  // coordinator/shard_recovery.cpp
  one_rolled_back,
  unreadable_forgotten,
  // coordinator/checkpoint_schedule.cpp
  any_part_taken,
  committed_without_one,
  // coordinator/straggler_detector.cpp
  evicts_beyond_cap,
  evicts_at_once,
  // server/replica.cpp
  leads_without_promise,
  another_payload,
  seen_generation_ignored,
  // server/replica_host.cpp
  checkpoint_not_restored,
  lost_not_compared,
  late_load_taken,
  active_generation_begun,
  begun_before_saved,
  joined_before_saved,
  log_lacks_unapplied,
  saved_without_gathered,
  read_without_gathered,
  copied_without_gathered,
  never_freed,
  // server/shard.cpp
  applied_not_looked_at,
  answered_too_soon,
  sum_of_marked_taken,
  sum_marked_as_one,
  clock_ended_by_first_part,
  // session/session.cpp
  death_unreported,
  one_of_process_reported,
  added_not_started,
  done_before_evaluated,
  failure_forgotten,
  stop_unreported,
  ends_at_once,
  // session/process_table.cpp
  leaving_started,
  started_after_end,
  dismissed_is_lost,
  lost_not_started,
  left_out_fails,
  left_out_started,
  last_left_out,
  given_up_added,
  // session/restart_rules.cpp
  row_too_short,
  row_too_long,
  crash_too_few,
  crash_too_many,
  window_ignored,
  work_ends_no_row,
  old_work_counts,
  kills_are_crashes,
  pause_does_not_grow,
  quick_dismissals_forgotten,
  // session/hung_processes.cpp
  hung_left_alone,
  killed_at_once,
  // session/coordinator_watch.cpp
  silent_called_hung,
  new_events_hidden,
  events_shown_again,
  // session/evaluation_plan.cpp
  evaluations_overlap,
  evaluated_after_last,
  // worker/reducer.cpp
  refused_sum_forgotten,
  // worker/router.cpp
  pull_overtakes_push,
  nobody_introduced,
  // worker/request_window.cpp
  window_not_returned,
  link_not_opened_again,
  // cli/sim/job_stages.cpp
  stage_swallows,
  stage_doubles,
  stage_renames,
  stage_reorders,
  // cli/sim/job_lines.cpp
  partial_push_done_early,
  // cli/sim/chain_clients.cpp
  silence_shorter_than_lease,
  silence_after_restart,
  late_keeps_lease,
  // cli/sim/chain_clients.cpp and job_coordinator.cpp
  sent_before_persisted,
  // cli/sim/chain_servers.cpp
  lease_from_arrival,
  no_deduplication,
  applied_not_copied,
  read_anywhere,
  acknowledged_before_final,
};

/// The simulated world that runs the mistaken code; both: chain and job.
enum class mutation_world : std::uint8_t { chain, job, both, channel, gossip, pipeline };

struct mutation_entry {
  mutation value;
  std::string_view name;
  /// Why no simulated history can show it; empty: some history must.
  std::string_view harmless_because = {};
  mutation_world in = mutation_world::chain;
};

inline constexpr std::array mutations{
  mutation_entry{mutation::append_unchecked, "append_unchecked"},
  mutation_entry{mutation::append_over_a_gap, "append_over_a_gap"},
  mutation_entry{mutation::append_while_sealed, "append_while_sealed"},
  mutation_entry{mutation::commit_at_once, "commit_at_once"},
  mutation_entry{
    mutation::commit_while_sealed, "commit_while_sealed",
    "what it makes final its joiner has too, and so has every member of a configuration after it"},
  mutation_entry{mutation::nothing_sent_again, "nothing_sent_again"},
  mutation_entry{mutation::log_kept_when_removed, "log_kept_when_removed",
                 "the copy that a joiner gets replaces its log"},
  mutation_entry{mutation::state_trusted_when_removed, "state_trusted_when_removed"},
  mutation_entry{mutation::copy_off_by_one, "copy_off_by_one"},
  mutation_entry{mutation::joiner_complete_without_copy, "joiner_complete_without_copy"},
  mutation_entry{mutation::joiner_not_waited_for, "joiner_not_waited_for"},
  mutation_entry{mutation::synced_too_early, "synced_too_early"},
  mutation_entry{mutation::released_before_joined, "released_before_joined"},
  mutation_entry{mutation::read_without_lease, "read_without_lease"},
  mutation_entry{mutation::read_while_sealed, "read_while_sealed"},
  mutation_entry{mutation::stall_unreported, "stall_unreported"},
  mutation_entry{
    mutation::unheard_not_waited_for, "unheard_not_waited_for", {}, mutation_world::job},
  mutation_entry{mutation::credit_twice, "credit_twice", {}, mutation_world::channel},
  mutation_entry{mutation::credit_ignored, "credit_ignored", {}, mutation_world::channel},
  mutation_entry{mutation::bytes_ignored, "bytes_ignored", {}, mutation_world::channel},
  mutation_entry{mutation::old_parcel_taken, "old_parcel_taken", {}, mutation_world::channel},
  mutation_entry{mutation::old_credit_counted, "old_credit_counted", {}, mutation_world::channel},
  mutation_entry{mutation::lost_before_last, "lost_before_last", {}, mutation_world::channel},
  mutation_entry{mutation::gap_not_noticed, "gap_not_noticed", {}, mutation_world::channel},
  mutation_entry{
    mutation::old_session_not_ended, "old_session_not_ended", {}, mutation_world::channel},
  mutation_entry{mutation::late_open_taken, "late_open_taken", {}, mutation_world::channel},
  mutation_entry{mutation::accepted_too_soon, "accepted_too_soon", {}, mutation_world::channel},
  mutation_entry{mutation::not_connected_again, "not_connected_again", {}, mutation_world::channel},
  mutation_entry{mutation::writable_forgotten, "writable_forgotten", {}, mutation_world::channel},
  mutation_entry{
    mutation::writable_without_room, "writable_without_room", {}, mutation_world::channel},
  mutation_entry{mutation::lost_not_counted, "lost_not_counted", {}, mutation_world::channel},
  mutation_entry{mutation::meeting_not_renewed, "meeting_not_renewed", {}, mutation_world::gossip},
  mutation_entry{mutation::echo_ignored, "echo_ignored", {}, mutation_world::gossip},
  mutation_entry{
    mutation::unshared_values_mixed, "unshared_values_mixed", {}, mutation_world::gossip},
  mutation_entry{mutation::idle_turning, "idle_turning", {}, mutation_world::gossip},
  mutation_entry{
    mutation::neighbour_not_awaited, "neighbour_not_awaited", {}, mutation_world::gossip},
  mutation_entry{
    mutation::lost_weight_not_kept, "lost_weight_not_kept", {}, mutation_world::gossip},
  mutation_entry{mutation::degree_of_now, "degree_of_now", {}, mutation_world::gossip},
  mutation_entry{mutation::change_to_successor, "change_to_successor", {}, mutation_world::gossip},
  mutation_entry{mutation::change_added_twice, "change_added_twice", {}, mutation_world::gossip},
  mutation_entry{mutation::both_asked_wait, "both_asked_wait", {}, mutation_world::gossip},
  mutation_entry{mutation::taken_answers, "taken_answers", {}, mutation_world::gossip},
  mutation_entry{mutation::never_untaken, "never_untaken", {}, mutation_world::gossip},
  mutation_entry{
    mutation::successor_keeps_copy, "successor_keeps_copy", {}, mutation_world::gossip},
  mutation_entry{mutation::old_attempt_taken, "old_attempt_taken", {}, mutation_world::pipeline},
  mutation_entry{
    mutation::attempt_kept_at_loss, "attempt_kept_at_loss", {}, mutation_world::pipeline},
  mutation_entry{mutation::greet_unheeded, "greet_unheeded", {}, mutation_world::pipeline},
  mutation_entry{mutation::ready_goes_on, "ready_goes_on", {}, mutation_world::pipeline},
  mutation_entry{mutation::drop_untold, "drop_untold", {}, mutation_world::pipeline},
  mutation_entry{mutation::drop_unsaid, "drop_unsaid", {}, mutation_world::pipeline},
  mutation_entry{mutation::line_not_awaited, "line_not_awaited", {}, mutation_world::pipeline},
  mutation_entry{
    mutation::part_below_not_awaited, "part_below_not_awaited", {}, mutation_world::pipeline},
  mutation_entry{
    mutation::applied_before_push, "applied_before_push", {}, mutation_world::pipeline},
  mutation_entry{mutation::micro_left_out, "micro_left_out", {}, mutation_world::pipeline},
  mutation_entry{mutation::micro_repeated, "micro_repeated", {}, mutation_world::pipeline},
  mutation_entry{mutation::inputs_unbounded, "inputs_unbounded", {}, mutation_world::pipeline},
  mutation_entry{mutation::old_result_counted, "old_result_counted", {}, mutation_world::pipeline},
  mutation_entry{mutation::old_answer_counted, "old_answer_counted", {}, mutation_world::pipeline},
  mutation_entry{mutation::activate_before_new_seal, "activate_before_new_seal"},
  mutation_entry{mutation::activate_before_old_seal, "activate_before_old_seal"},
  mutation_entry{
    mutation::activate_incomplete, "activate_incomplete",
    "servers here restore a checkpoint before they seal the generation that it begins"},
  mutation_entry{mutation::propose_from_proposal, "propose_from_proposal"},
  mutation_entry{mutation::joiner_promoted_unasked, "joiner_promoted_unasked"},
  mutation_entry{mutation::restarted_counts_as_member, "restarted_counts_as_member"},
  mutation_entry{mutation::last_member_removed, "last_member_removed"},
  mutation_entry{mutation::lost_when_silent, "lost_when_silent"},
  mutation_entry{mutation::found_twice, "found_twice"},
  mutation_entry{mutation::late_waited_for, "late_waited_for"},
  mutation_entry{mutation::late_counts_as_silent, "late_counts_as_silent"},
  mutation_entry{mutation::stalled_left_alone, "stalled_left_alone"},
  mutation_entry{mutation::stalled_brought_together, "stalled_brought_together"},
  mutation_entry{mutation::move_without_sync, "move_without_sync"},
  mutation_entry{mutation::endless_moving, "endless_moving"},
  mutation_entry{mutation::other_past_same_name, "other_past_same_name", {}, mutation_world::job},
  mutation_entry{mutation::lost_work_forgotten, "lost_work_forgotten", {}, mutation_world::job},
  mutation_entry{mutation::audit_queues_nothing, "audit_queues_nothing", {}, mutation_world::job},
  mutation_entry{mutation::lease_ids_again, "lease_ids_again", {}, mutation_world::job},
  mutation_entry{
    mutation::recovered_clock_told, "recovered_clock_told",
    "a worker's clock moves when every chain has answered it, and who has heard of it goes by that",
    mutation_world::job},
  mutation_entry{mutation::promise_ignored, "promise_ignored", {}, mutation_world::job},
  mutation_entry{mutation::told_of_all_members, "told_of_all_members", {}, mutation_world::job},
  mutation_entry{mutation::term_again, "term_again", {}, mutation_world::job},
  mutation_entry{mutation::finished_unsaved, "finished_unsaved", {}, mutation_world::job},
  mutation_entry{mutation::works_after_last_cut, "works_after_last_cut", {}, mutation_world::job},
  mutation_entry{mutation::last_one_given_up, "last_one_given_up", {}, mutation_world::job},
  mutation_entry{mutation::given_up_not_rejected, "given_up_not_rejected", {}, mutation_world::job},
  mutation_entry{mutation::drained_too_soon, "drained_too_soon", {}, mutation_world::job},
  mutation_entry{mutation::one_rolled_back, "one_rolled_back", {}, mutation_world::job},
  mutation_entry{mutation::unreadable_forgotten, "unreadable_forgotten", {}, mutation_world::job},
  mutation_entry{mutation::any_part_taken, "any_part_taken", {}, mutation_world::job},
  mutation_entry{mutation::committed_without_one, "committed_without_one", {}, mutation_world::job},
  mutation_entry{mutation::evicts_beyond_cap, "evicts_beyond_cap", {}, mutation_world::job},
  mutation_entry{mutation::evicts_at_once, "evicts_at_once",
                 "of so few workers one may be out at a time, and is so for longer than that pause",
                 mutation_world::job},
  mutation_entry{mutation::leads_without_promise, "leads_without_promise", {}, mutation_world::job},
  mutation_entry{mutation::another_payload, "another_payload", {}, mutation_world::job},
  mutation_entry{
    mutation::seen_generation_ignored, "seen_generation_ignored",
    "whoever could answer has sealed its history, or lost its lease, before a later one "
    "begins, and without replicas a view has one server to ask",
    mutation_world::job},
  mutation_entry{
    mutation::checkpoint_not_restored, "checkpoint_not_restored", {}, mutation_world::job},
  mutation_entry{mutation::lost_not_compared, "lost_not_compared", {}, mutation_world::job},
  mutation_entry{mutation::late_load_taken, "late_load_taken", {}, mutation_world::job},
  mutation_entry{
    mutation::active_generation_begun, "active_generation_begun", {}, mutation_world::job},
  mutation_entry{mutation::begun_before_saved, "begun_before_saved", {}, mutation_world::job},
  mutation_entry{mutation::joined_before_saved, "joined_before_saved", {}, mutation_world::job},
  mutation_entry{mutation::log_lacks_unapplied, "log_lacks_unapplied", {}, mutation_world::job},
  mutation_entry{
    mutation::saved_without_gathered, "saved_without_gathered", {}, mutation_world::job},
  mutation_entry{mutation::read_without_gathered, "read_without_gathered", {}, mutation_world::job},
  mutation_entry{
    mutation::copied_without_gathered, "copied_without_gathered", {}, mutation_world::job},
  mutation_entry{mutation::never_freed, "never_freed", {}, mutation_world::job},
  mutation_entry{mutation::applied_not_looked_at, "applied_not_looked_at", {}, mutation_world::job},
  mutation_entry{mutation::answered_too_soon, "answered_too_soon", {}, mutation_world::job},
  mutation_entry{mutation::sum_of_marked_taken, "sum_of_marked_taken", {}, mutation_world::job},
  mutation_entry{mutation::sum_marked_as_one, "sum_marked_as_one", {}, mutation_world::job},
  mutation_entry{
    mutation::clock_ended_by_first_part, "clock_ended_by_first_part", {}, mutation_world::job},
  mutation_entry{mutation::death_unreported, "death_unreported", {}, mutation_world::job},
  mutation_entry{
    mutation::one_of_process_reported, "one_of_process_reported", {}, mutation_world::job},
  mutation_entry{mutation::added_not_started, "added_not_started", {}, mutation_world::job},
  mutation_entry{mutation::done_before_evaluated, "done_before_evaluated", {}, mutation_world::job},
  mutation_entry{mutation::failure_forgotten, "failure_forgotten", {}, mutation_world::job},
  mutation_entry{mutation::stop_unreported, "stop_unreported", {}, mutation_world::job},
  mutation_entry{mutation::ends_at_once, "ends_at_once", {}, mutation_world::job},
  mutation_entry{mutation::leaving_started, "leaving_started", {}, mutation_world::job},
  mutation_entry{mutation::started_after_end, "started_after_end", {}, mutation_world::job},
  mutation_entry{mutation::dismissed_is_lost, "dismissed_is_lost", {}, mutation_world::job},
  mutation_entry{mutation::lost_not_started, "lost_not_started", {}, mutation_world::job},
  mutation_entry{mutation::left_out_fails, "left_out_fails", {}, mutation_world::job},
  mutation_entry{mutation::left_out_started, "left_out_started", {}, mutation_world::job},
  mutation_entry{mutation::last_left_out, "last_left_out", {}, mutation_world::job},
  mutation_entry{mutation::given_up_added, "given_up_added", {}, mutation_world::job},
  mutation_entry{mutation::row_too_short, "row_too_short", {}, mutation_world::job},
  mutation_entry{mutation::row_too_long, "row_too_long", {}, mutation_world::job},
  mutation_entry{mutation::crash_too_few, "crash_too_few", {}, mutation_world::job},
  mutation_entry{mutation::crash_too_many, "crash_too_many", {}, mutation_world::job},
  mutation_entry{mutation::window_ignored, "window_ignored", {}, mutation_world::job},
  mutation_entry{mutation::work_ends_no_row, "work_ends_no_row", {}, mutation_world::job},
  mutation_entry{mutation::old_work_counts, "old_work_counts", {}, mutation_world::job},
  mutation_entry{mutation::kills_are_crashes, "kills_are_crashes", {}, mutation_world::job},
  mutation_entry{mutation::pause_does_not_grow, "pause_does_not_grow", {}, mutation_world::job},
  mutation_entry{
    mutation::quick_dismissals_forgotten, "quick_dismissals_forgotten", {}, mutation_world::job},
  mutation_entry{mutation::hung_left_alone, "hung_left_alone", {}, mutation_world::job},
  mutation_entry{mutation::killed_at_once, "killed_at_once", {}, mutation_world::job},
  mutation_entry{mutation::silent_called_hung, "silent_called_hung", {}, mutation_world::job},
  mutation_entry{mutation::new_events_hidden, "new_events_hidden", {}, mutation_world::job},
  mutation_entry{mutation::events_shown_again, "events_shown_again", {}, mutation_world::job},
  mutation_entry{mutation::evaluations_overlap, "evaluations_overlap", {}, mutation_world::job},
  mutation_entry{mutation::evaluated_after_last, "evaluated_after_last", {}, mutation_world::job},
  mutation_entry{mutation::refused_sum_forgotten, "refused_sum_forgotten", {}, mutation_world::job},
  mutation_entry{mutation::pull_overtakes_push, "pull_overtakes_push", {}, mutation_world::job},
  mutation_entry{mutation::nobody_introduced, "nobody_introduced", {}, mutation_world::job},
  mutation_entry{mutation::window_not_returned, "window_not_returned", {}, mutation_world::job},
  mutation_entry{mutation::link_not_opened_again, "link_not_opened_again", {}, mutation_world::job},
  mutation_entry{mutation::stage_swallows, "stage_swallows", {}, mutation_world::job},
  mutation_entry{mutation::stage_doubles, "stage_doubles", {}, mutation_world::job},
  mutation_entry{mutation::stage_renames, "stage_renames", {}, mutation_world::job},
  mutation_entry{mutation::stage_reorders, "stage_reorders", {}, mutation_world::job},
  mutation_entry{
    mutation::partial_push_done_early, "partial_push_done_early", {}, mutation_world::job},
  mutation_entry{mutation::silence_shorter_than_lease, "silence_shorter_than_lease"},
  mutation_entry{mutation::silence_after_restart, "silence_after_restart"},
  mutation_entry{mutation::late_keeps_lease, "late_keeps_lease"},
  mutation_entry{
    mutation::sent_before_persisted, "sent_before_persisted", {}, mutation_world::both},
  mutation_entry{mutation::lease_from_arrival, "lease_from_arrival"},
  mutation_entry{mutation::no_deduplication, "no_deduplication"},
  mutation_entry{mutation::applied_not_copied, "applied_not_copied"},
  mutation_entry{mutation::read_anywhere, "read_anywhere"},
  mutation_entry{mutation::acknowledged_before_final, "acknowledged_before_final"},
};

#ifdef TROUPE_MUTATIONS
inline mutation planted = mutation::none;
inline bool mutated(mutation which) { return planted == which; }
#else
constexpr bool mutated(mutation) { return false; }
#endif

} // namespace troupe
