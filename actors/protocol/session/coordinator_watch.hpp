// Follows the news of a job's coordinator: which one leads, since when none is heard, and which of
// its events are new.
#pragma once

#include "actors/protocol/session/job_update.hpp"
#include "base/clock.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

struct coordinator_watch_options {
  std::string address;      ///< Of the coordinator, for the user.
  bool is_only_one = false; ///< It is a process of this host and has no standbys: it may be killed.
};

/// A plain state machine; all times are of one clock that only grows.
///
/// Invariants:
/// (1) each event of a coordinator is returned once. Held by: check_shown() in
///     cli/sim/job_launcher_checks.cpp.
/// (2) a coordinator that was heard within `hung_silence` does not hang. Held by: check_kill() in
///     cli/sim/job_launcher_checks.cpp.
/// (3) silence during which the launcher itself stood still does not count. Held by: assert in
///     hear().
class coordinator_watch {
public:
  struct findings {
    std::vector<job_event> events{}; ///< For the user, in order.
    bool is_back = false;            ///< A coordinator answers after the death of one.
    bool is_hung = false;            ///< It has to be killed.
  };

  coordinator_watch(coordinator_watch_options options, time_point now);

  /// Takes the newest news; the same ones may come again.
  findings follow(const job_update& news, time_point now);
  /// Takes note that the job has ended: silence is normal from now on.
  void job_ended() { has_ended_ = true; }
  /// Takes note of the death of a coordinator process.
  void lost(time_point now) { lost_ = lost_coordinator{last_term_, now}; }

  /// Returns whether a coordinator with this index waits beside the leader.
  bool is_standby(std::uint32_t index) const { return leader_ && index != *leader_; }
  /// Returns the time of the latest news; nullopt: there were none.
  std::optional<time_point> heard_at() const { return heard_at_; }
  /// Returns whether more than `time` has passed since `begin` and since the latest news.
  bool is_silent_since(time_point begin, time_point time, time_point now) const;

private:
  void hear(const job_update& news, time_point now, findings& what);
  void look_for_successor(const job_update& news, time_point now, findings& what);
  void take_events(const job_update& news, findings& what);

  struct lost_coordinator {
    std::uint64_t term = 0; ///< The latest term known at that time.
    time_point at{0};
  };

  coordinator_watch_options options_;
  time_point started_at_;
  bool has_ended_ = false;
  std::pair<std::uint64_t, std::uint64_t> heard_{0, 0}; ///< Term and sequence of the latest news.
  std::optional<time_point> heard_at_;
  time_point followed_at_;
  time_point silent_since_; ///< Counts only silence during which this launcher was awake.
  bool told_of_silence_ = false;
  std::uint64_t last_term_ = 0;
  std::optional<std::uint32_t> leader_; ///< The coordinator that sent the latest news.
  std::optional<lost_coordinator> lost_;
  std::uint64_t events_term_ = 0;
  std::uint64_t events_seen_ = 0;
};

} // namespace troupe
