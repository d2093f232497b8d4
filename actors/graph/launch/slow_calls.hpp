// Finds calls of the program's code that do not return, and tells of them.
#pragma once

#include "base/notice.hpp"
#include "actors/protocol/process_name.hpp"
#include "base/clock.hpp"
#include "base/log_sink.hpp"
#include "base/user_code.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A plain state machine. A call counts as open from the first look that finds it.
class slow_calls {
public:
  /// `patience`: a call that has not returned for this time is named.
  explicit slow_calls(std::chrono::seconds patience = std::chrono::seconds{10})
      : patience_(patience) {}

  /// Returns a line for each call that became slow, "worker 1's trainer has not returned for 10 s".
  /// `open`: all open calls. Each call has one line.
  std::vector<std::string> look(const std::vector<open_call>& open, time_point now);
  /// Returns the name of the call that was open for the longest time at the last look; nullopt:
  /// none was open for `least`.
  std::optional<std::string> longest(time_point least) const;

private:
  struct seen_call {
    std::string name;
    time_point since;
    bool is_told = false;
  };
  std::chrono::seconds patience_;
  std::map<std::uint64_t, seen_call> seen_; ///< By number.
  time_point looked_at_{0};
};

/// Starts a thread that tells of slow calls of this process, until it ends: as a notice, and in the
/// log. `self`: the process, whose own name is left out. A server that is silent for 5 s counts as
/// dead and is killed, so its calls are named after 4 s. `each_look`: called twice a second.
void tell_slow_calls(process_name self, notice_sink waits, log_sink log,
                     std::function<void()> each_look);

} // namespace troupe
