#include "actors/roles/observer/observer_board.hpp"

#include <utility>

namespace troupe {

std::optional<job_news> observer_board::latest() const {
  const std::lock_guard lock{mutex_};
  return latest_;
}

void observer_board::publish(job_news what) {
  const std::lock_guard lock{mutex_};
  latest_ = std::move(what);
}

void observer_board::update(const std::function<void(observer_report&)>& change) {
  const std::lock_guard lock{mutex_};
  change(report_);
}

observer_report observer_board::report() const {
  const std::lock_guard lock{mutex_};
  return report_;
}

} // namespace troupe
