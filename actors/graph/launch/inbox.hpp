// Brings values of other threads to the launcher's main thread.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace troupe {

/// Copies share their values, so a thread with one may outlive the launcher.
template <class Value>
class inbox {
public:
  void put(Value what) const {
    const std::lock_guard lock{box_->mutex};
    box_->fresh.push_back(std::move(what));
  }
  std::vector<Value> take() const {
    const std::lock_guard lock{box_->mutex};
    return std::exchange(box_->fresh, {});
  }

private:
  struct box {
    std::mutex mutex;
    std::vector<Value> fresh;
  };
  std::shared_ptr<box> box_ = std::make_shared<box>();
};

} // namespace troupe
