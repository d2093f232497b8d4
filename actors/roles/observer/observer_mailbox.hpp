// The observer actor and the launcher's main thread exchange their news here.
#pragma once

#include "serialization/messages.hpp"

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace troupe {

/// The coordinator's newest word on the job.
struct job_update {
  job_status desired_state;
  std::uint64_t term = 0;
  bool stop = false;
  std::string failed;
  std::uint64_t sequence = 0; ///< Number of this desired state within the term.
};

/// Thread-safe.
class observer_mailbox {
public:
  /// The newest orders; nullopt before the first.
  std::optional<job_update> latest() const;
  void publish(job_update what);

  /// Changes the observer's next status.
  void update(const std::function<void(observer_status&)>& change);
  observer_status report() const;

private:
  mutable std::mutex mutex_;
  std::optional<job_update> latest_;
  observer_status report_;
};

} // namespace troupe
