#include "kernels/devices/shared_parameters.hpp"

#include <chrono>
#include <utility>

namespace troupe {

namespace {

/// Far more than it takes to bring parameters to a device: whoever does so hangs, or has failed.
constexpr std::chrono::seconds bringing_max{5};

} // namespace

std::optional<shared_parameters::source> shared_parameters::find(const value_identity& which) {
  if (which.empty())
    return std::nullopt;
  std::optional<source> before; // Without the lock: it may be the last of its device's memory.
  std::unique_lock guard{mutex_};
  if (!changed_.wait_for(guard, bringing_max, [&] { return from_ || !which.same_as(which_); }))
    return std::nullopt;
  if (which.same_as(which_))
    return from_;
  which_ = which;
  before = std::exchange(from_, std::nullopt);
  changed_.notify_all(); // Who waits for others would wait in vain.
  return std::nullopt;
}

void shared_parameters::put(const value_identity& which, source from) {
  std::optional<source> before = std::move(from); // As in find().
  const std::lock_guard guard{mutex_};
  if (!which.same_as(which_))
    return; // Others are asked for by now.
  from_.swap(before);
  changed_.notify_all();
}

void shared_parameters::give_up(const value_identity& which) {
  std::optional<source> before; // As in find().
  const std::lock_guard guard{mutex_};
  if (!which.same_as(which_))
    return;
  which_ = {};
  before = std::exchange(from_, std::nullopt);
  changed_.notify_all();
}

} // namespace troupe
