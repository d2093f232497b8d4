#include "actors/inline_executor.hpp"

#include "caf/actor_system.hpp"
#include "caf/scheduler/abstract_coordinator.hpp"

#include <chrono>
#include <utility>

namespace troupe {

namespace {

/// Longest time of one run(), beside its last message: the executor's thread does no other work
/// meanwhile.
constexpr std::chrono::milliseconds run_time_max{2};

} // namespace

inline_executor::~inline_executor() { leave_rest_to_scheduler(); }

void inline_executor::run() {
  const auto end = std::chrono::steady_clock::now() + run_time_max;
  for (std::size_t turns = 0; !jobs_.empty() && turns < turns_max_; ++turns) {
    auto* job = jobs_.front();
    jobs_.pop_front();
    if (job->resume(this, 1) == caf::resumable::resume_later)
      jobs_.push_back(job);
    else
      caf::intrusive_ptr_release(job);
    if (std::chrono::steady_clock::now() >= end)
      break;
  }
  leave_rest_to_scheduler();
}

void inline_executor::leave_rest_to_scheduler() {
  for (auto* job : std::exchange(jobs_, {}))
    system().scheduler().enqueue(job);
}

} // namespace troupe
