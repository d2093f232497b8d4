// Names the members that a job waits for, or trains without, once that lasts for some seconds.
#pragma once

#include "actors/graph/report/progress.hpp"
#include "base/clock.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A plain state machine.
///
/// Invariants:
/// (1) a line names all that were missing for `patience`, as far as list_of() does.
/// (2) the same list makes one line, until one member is back or another one is missing.
class missing_members {
public:
  /// A member that is missing for this time is named. A shorter time names ordinary restarts too.
  static constexpr std::chrono::milliseconds patience{4000};
  /// The least time between two lines.
  static constexpr std::chrono::milliseconds pause{5000};

  /// Returns the line that is due.
  std::optional<std::string> look(const progress_snapshot& job, time_point now);

private:
  std::map<std::string, time_point> since_; ///< The missing members, by name.
  std::vector<std::string> told_;
  std::optional<time_point> told_at_;
};

} // namespace troupe
