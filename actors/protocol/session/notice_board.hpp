// Decides which notices of a host's processes become lines on the console, and when.
#pragma once

#include "actors/protocol/session/notice.hpp"
#include "base/clock.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

struct notice_board_options {
  /// Time that a notice waits for others with the same text, which then share its line.
  std::chrono::milliseconds together{300};
  /// The least time between two lines on one topic of one process; notices between them are lost.
  std::chrono::milliseconds pause{5000};
  /// The most lines in a second, of all processes together.
  std::size_t rate_max = 5;
};

/// A plain state machine.
///
/// Invariants:
/// (1) a notice whose wait goes on, with the same text, becomes one line.
/// (2) in no second are there more than rate_max lines; a notice that had to wait is told later, if
///     it still holds.
class notice_board {
public:
  explicit notice_board(notice_board_options options = {}) : options_(options) {}

  void take(const notice& what, time_point now);
  /// Says that the process has ended, and with it all its waits.
  void forget(process_name who);
  /// Returns the lines that are due.
  std::vector<std::string> lines(time_point now);

private:
  struct entry {
    std::string text; ///< Empty: the wait is over.
    std::string told; ///< The text of its last line; empty: none, or the wait was over since.
    time_point changed_at{0};
    std::optional<time_point> told_at;
  };

  bool is_due(const entry& of, time_point now) const;

  notice_board_options options_;
  std::map<std::pair<process_name, std::string>, entry> entries_; ///< By process and topic.
  std::vector<time_point> told_at_;                               ///< Lines of the last second.
};

} // namespace troupe
