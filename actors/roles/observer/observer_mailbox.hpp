// Exchanges data between the observer actor and the launcher's main thread.
#pragma once

#include "base/error.hpp"
#include "serialization/messages.hpp"

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

namespace troupe {

/// The state of the job as the coordinator reports it.
struct job_update {
  job_status desired_state;
  std::uint64_t term = 0;
  bool stop = false;
  std::optional<failure> failed; ///< With `stop`: set if the job failed.
  std::uint64_t sequence = 0;    ///< The message's number within the term.
};

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
