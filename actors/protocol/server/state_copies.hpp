// Decides which copies of a replica's state are sent to a joiner and asked for from the tail. A
// plain state machine, part of a replica_host.
#pragma once

#include "actors/protocol/server/host_effects.hpp"
#include "base/clock.hpp"

#include <chrono>
#include <optional>
#include <utility>

namespace troupe {

/// Events: requests of a joiner, new configurations, the replica's own request for a copy, and the
/// parts that arrive. Effects: send_copy_effect, end_copy_effect, ask_copy_effect.
///
/// Invariants:
/// (1) at most one copy is sent, and its values stay pinned until it ends. Held by: assert in
///     send().
/// (2) at most one copy is asked for, and again only after `patience` without a new part. Held by:
///     assert in ask().
/// (3) a copy that is saved first is handed out only when it is saved. Held by: assert in take().
class state_copies {
public:
  /// `patience`: a copy whose next part has not come for this time is asked for again.
  explicit state_copies(std::chrono::nanoseconds patience) : patience_(patience) {}

  /// Forgets all copies: another generation begins.
  void begin_generation();

  // -- to a joiner --
  /// Sends a part of the present copy. Returns false if the joiner needs another copy.
  bool send_part(const member_id& to, const copy_request& what, host_effects& effects);
  /// Sends a part of this new copy.
  void send(const member_id& to, const copy_request& what, copied_state fresh,
            host_effects& effects);
  /// Keeps a request for a configuration that this replica has not heard of. The joiner would send
  /// it again only after `patience`.
  void keep_early(const member_id& from, const copy_request& what) { early_ = {from, what}; }
  std::optional<std::pair<member_id, copy_request>> take_early() {
    return std::exchange(early_, std::nullopt);
  }
  /// Ends the copy if it is that of this joiner, which has it now.
  void joined(const member_id& from, config_id config, host_effects& effects);
  /// Ends a copy of an older configuration than the newest one.
  void supersede(config_id newest, host_effects& effects);

  // -- from the tail --
  void ask(const request_copy_effect& what, time_point now, host_effects& effects);
  /// Returns whether a copy for this configuration was asked for and is not whole yet.
  bool awaits(config_id config) const { return asked_ == config; }
  void advanced(time_point now) { asked_at_ = now; }
  /// Forgets the copy that is asked for; another one will be.
  void failed() { asked_.reset(); }
  /// Keeps a whole copy, which may have to be saved before it is handed out. Requires: awaits().
  void whole(copied_state what, bool is_saved_first);
  /// Notes that the save of a copy ended.
  void saved() { is_saved_ = true; }
  /// Returns whether a copy is being saved.
  bool saves() const { return !is_saved_; }
  /// Returns the whole copy, or nullopt.
  const std::optional<copied_state>& held() const { return held_; }
  /// Hands out the whole copy. Requires: there is one, and no save of it is under way.
  copied_state take();
  /// Drops the whole copy.
  void drop() { held_.reset(); }

private:
  std::chrono::nanoseconds patience_;
  std::optional<std::pair<member_id, config_id>> sending_; ///< The copy that is being sent.
  std::optional<std::pair<member_id, copy_request>> early_;
  std::optional<config_id> asked_; ///< A copy for this configuration is being received.
  time_point asked_at_{0};
  std::optional<copied_state> held_; ///< Until it is installed.
  bool is_saved_ = true;
};

} // namespace troupe
