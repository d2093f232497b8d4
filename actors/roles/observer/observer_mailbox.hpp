// Exchanges data between the observer actor and the launcher's main thread.
#pragma once

#include "actors/protocol/session/job_update.hpp"
#include "serialization/messages.hpp"

#include <functional>
#include <mutex>
#include <optional>

namespace troupe {

/// Thread-safe.
class observer_mailbox {
public:
  /// Returns the newest update; nullopt before the first.
  std::optional<job_update> latest() const;
  void publish(job_update what);

  /// Changes the content of the next reports.
  void update(const std::function<void(observer_status&)>& change);
  observer_status report() const;

private:
  mutable std::mutex mutex_;
  std::optional<job_update> latest_;
  observer_status report_;
};

} // namespace troupe
