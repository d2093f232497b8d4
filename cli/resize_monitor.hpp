// Follows a request of `troupe add` or `troupe drain`: decides what the coordinator is told, which
// lines the user sees, and when the request is done.
#pragma once

#include "actors/roles/observer/observer_mailbox.hpp"
#include "base/clock.hpp"
#include "serialization/job.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// Asks to add servers or to drain some, not both.
struct resize_request {
  std::uint32_t add = 0;       ///< Number of servers to add.
  std::set<server_id> drain{}; ///< Servers to drain.
};

/// A plain state machine.
///
/// Invariants:
/// (1) The request is in `wanted_` until the coordinator has heard it, and not after: by then it
///     may be done, and others may request another change.
class resize_monitor {
public:
  /// `coordinator`: its address, for messages.
  resize_monitor(resize_request request, job_spec job, std::string coordinator,
                 std::chrono::seconds timeout, time_point now);

  /// Takes the newest job update, which may be a repeat. Returns the lines for the user.
  std::vector<std::string> look(const std::optional<job_update>& news, time_point now);
  const resize& wanted() const { return wanted_; }
  /// Returns nullopt while the request goes on.
  /// Errors: timed_out; invalid_argument where the job has ended or refuses the request.
  const std::optional<result<void>>& outcome() const { return outcome_; }

private:
  void choose(const job_status& job, std::vector<std::string>& lines);
  void show_events(const job_update& news, std::vector<std::string>& lines);
  void hear(const job_update& news, time_point now, std::vector<std::string>& lines);
  bool is_heard(const job_status& job) const;
  bool is_done(const job_status& job) const;

  resize_request request_;
  job_spec job_;
  std::string coordinator_;
  std::chrono::seconds timeout_;
  time_point started_at_;
  std::set<server_id> servers_; ///< Servers that come or go. Empty: not chosen yet.
  bool were_there_ = false;     ///< All were members when the drain was asked for.
  bool heard_ = false;
  resize wanted_;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> last_word_; ///< Last term and sequence.
  time_point last_word_at_{};
  bool told_of_silence_ = false;
  std::uint64_t events_term_ = 0;
  std::uint64_t events_seen_ = 0;
  std::optional<result<void>> outcome_;
};

} // namespace troupe
