// What `troupe add` and `troupe drain` decide while they wait: what the coordinator is told, which
// lines the user sees, and when it is over.
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

/// One of both.
struct resize_request {
  std::uint32_t add = 0;       ///< So many servers.
  std::set<server_id> drain{}; ///< These.
};

/// A plain state machine.
///
/// Invariants:
/// (1) what was asked for is wished until the coordinator has heard it, and not after: by then it
///     may be done, and others may wish something else.
class resize_monitor {
public:
  /// `coordinator`: where it is, for the user.
  resize_monitor(resize_request request, job_spec job, std::string coordinator,
                 std::chrono::seconds timeout, time_point now);

  /// The newest news, which may be the same again; the lines for the user.
  std::vector<std::string> look(const std::optional<job_update>& news, time_point now);
  const resize& wanted() const { return wanted_; }
  /// None: it goes on. Errors: timed_out, and invalid_argument for what the job refuses.
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
  std::set<server_id> servers_; ///< That come or go. Empty: nothing was asked for yet.
  bool were_there_ = false;     ///< All of them, when they were asked to leave.
  bool heard_ = false;
  resize wanted_;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> last_word_; ///< Term and sequence.
  time_point last_word_at_{};
  bool told_of_silence_ = false;
  std::uint64_t events_term_ = 0;
  std::uint64_t events_seen_ = 0;
  std::optional<result<void>> outcome_;
};

} // namespace troupe
