#include "kernels/devices/shared_parameters.hpp"

#include <chrono>
#include <utility>

namespace troupe {

namespace {

/// Far more than a copy of parameters to a device takes: a slower copy hangs, or has failed.
constexpr std::chrono::seconds bringing_max{5};

} // namespace

std::optional<shared_parameters::source> shared_parameters::find(const value_identity& which) {
  if (which.empty())
    return std::nullopt;
  std::optional<source> before; // Destroyed without the lock: it may hold the last reference to its
                                // device's memory.
  std::unique_lock guard{mutex_};
  if (!changed_.wait_for(guard, bringing_max, [&] { return from_ || !which.same_as(which_); }))
    return std::nullopt;
  if (which.same_as(which_))
    return from_;
  which_ = which;
  before = std::exchange(from_, std::nullopt);
  changed_.notify_all(); // Threads that wait for the old values would wait in vain.
  return std::nullopt;
}

void shared_parameters::put(const value_identity& which, source from) {
  std::optional<source> before = std::move(from); // Destroyed without the lock, as in find().
  const std::lock_guard guard{mutex_};
  if (!which.same_as(which_))
    return; // Other values are requested by now.
  from_.swap(before);
  changed_.notify_all();
}

void shared_parameters::give_up(const value_identity& which) {
  std::optional<source> before; // Destroyed without the lock, as in find().
  const std::lock_guard guard{mutex_};
  if (!which.same_as(which_))
    return;
  which_ = {};
  before = std::exchange(from_, std::nullopt);
  changed_.notify_all();
}

} // namespace troupe
