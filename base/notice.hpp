// A line for the person who runs a job. Events are facts for programs, and logs are for later.
#pragma once

#include "base/log_sink.hpp"

#include <functional>
#include <string>

namespace troupe {

struct notice {
  log_level level = log_level::info;
  /// A word. A later notice of one topic and member takes the place of this one, and an empty text
  /// says that the matter is over. Without a topic, the notice stands alone.
  std::string topic{};
  std::string member{}; ///< "server 0". Empty: the launcher, or the sink knows it.
  std::string text{};

  bool operator==(const notice&) const = default;
};

/// Takes notices. Thread-safe; does not block. May be empty.
using notice_sink = std::function<void(const notice&)>;

} // namespace troupe
