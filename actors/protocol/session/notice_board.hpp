// Decides which notices of members become lines on the console, and when.
#pragma once

#include "base/clock.hpp"
#include "base/notice.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A plain state machine.
///
/// Invariants:
/// (1) a notice that still holds, with the same text, becomes one line. Held by: assert in lines().
/// (2) in no second are there more than rate_max lines; a notice that had to wait is told later, if
///     it still holds. Held by: assert in lines().
class notice_board {
public:
  /// Time that a notice waits for others with the same text, which then share its line.
  static constexpr std::chrono::milliseconds together{300};
  /// The least time between two lines on one topic of one member; notices between them are lost.
  static constexpr std::chrono::milliseconds pause{5000};
  /// The most lines in a second, of all members together.
  static constexpr std::size_t rate_max = 5;

  /// Takes a notice that has a topic.
  void take(const notice& what, time_point now);
  /// Says that the member has ended, and with it all that its notices told of.
  void forget(const std::string& member);
  /// Returns the lines that are due.
  std::vector<std::string> lines(time_point now);

private:
  struct entry {
    std::string text; ///< Empty: the matter is over.
    std::string told; ///< The text of its last line; empty: none, or it was over since.
    time_point changed_at{0};
    std::optional<time_point> told_at;
  };

  /// Orders "worker 9" before "worker 10".
  struct key {
    std::string member, topic;
    bool operator<(const key& other) const;
  };

  bool is_due(const entry& of, time_point now) const;

  std::map<key, entry> entries_;
  std::vector<time_point> told_at_; ///< Lines of the last second.
};

} // namespace troupe
