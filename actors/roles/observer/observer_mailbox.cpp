#include "actors/roles/observer/observer_mailbox.hpp"

#include <utility>

namespace troupe {

std::optional<job_update> observer_mailbox::latest() const {
  const std::lock_guard lock{mutex_};
  return latest_;
}

void observer_mailbox::publish(job_update what) {
  const std::lock_guard lock{mutex_};
  latest_ = std::move(what);
}

void observer_mailbox::update(const std::function<void(observer_status&)>& change) {
  const std::lock_guard lock{mutex_};
  change(report_);
}

observer_status observer_mailbox::report() const {
  const std::lock_guard lock{mutex_};
  return report_;
}

} // namespace troupe
