// Mistakes planted by name, so that the simulator can show that it would see them. Only in a build
// for that (TROUPE_MUTATIONS); elsewhere nothing is left of them.
#pragma once

#include <cstdint>

namespace troupe {

enum class mutation : std::uint8_t {
  none,
  // chain
  append_of_any_epoch,
  append_while_sealed,
  append_from_anyone,
  append_over_a_gap,
  commit_while_sealed,
  commit_at_once,
  commit_of_any_epoch,
  nothing_sent_again,
  nothing_sent_on_activation,
  log_kept_when_removed,
  state_trusted_when_removed,
  copy_off_by_one,
  joiner_complete_without_copy,
  joiner_not_waited_for,
  joint_too_early,
  released_before_joined,
  read_without_lease,
  read_while_sealed,
  lease_from_arrival,
  // placement
  activate_before_new_seal,
  activate_before_old_seal,
  propose_from_proposal,
  joiner_promoted_unasked,
  restarted_counts_as_member,
  last_member_removed,
  // the world around them
  silence_shorter_than_lease,
  silence_after_restart,
  sent_before_persisted,
  no_deduplication,
  marks_not_copied,
  read_anywhere,
  acknowledged_before_final,
  count,
};

#ifdef TROUPE_MUTATIONS
inline mutation planted = mutation::none;
inline bool mutated(mutation which) { return planted == which; }
#else
constexpr bool mutated(mutation) { return false; }
#endif

} // namespace troupe
