#include "actors/lane.hpp"

#include "caf/actor_system.hpp"
#include "caf/scheduler/abstract_coordinator.hpp"

namespace troupe {

namespace {

/// Messages of one turn: enough to make turns cheap, few enough to be fair.
constexpr std::size_t turn_messages_max = 16;

} // namespace

lane::~lane() { leave_rest_to_scheduler(); }

void lane::run() {
  for (std::size_t turns = 0; !jobs_.empty() && turns < jobs_max_; ++turns) {
    auto* job = jobs_.front();
    jobs_.pop_front();
    if (job->resume(this, turn_messages_max) == caf::resumable::resume_later)
      jobs_.push_back(job);
    else
      caf::intrusive_ptr_release(job);
  }
  leave_rest_to_scheduler();
}

void lane::leave_rest_to_scheduler() {
  for (auto* job : std::exchange(jobs_, {}))
    system().scheduler().enqueue(job);
}

} // namespace troupe
