// Runs actors on a thread of the caller. Handing a message to an idle actor costs a wake-up
// of another thread, 5 to 50 us. There the actor runs where the message was made, and so do the
// actors that it sends to in turn.
#pragma once

#include "caf/actor_cast.hpp"
#include "caf/actor_control_block.hpp"
#include "caf/execution_unit.hpp"
#include "caf/make_message.hpp"
#include "caf/resumable.hpp"

#include <cstddef>
#include <deque>
#include <utility>

namespace troupe {

/// For one thread. Runs actors of the scheduler as a thread of the scheduler would: one message at
/// a time, in order. An actor that the scheduler is running, or that has a thread of its own, stays
/// there. So an actor that blocks, or computes for long, holds up the other work of the executor's
/// thread.
class inline_executor : public caf::execution_unit {
public:
  /// `turns_max`: after this many messages in one run(), or 2 ms, the scheduler takes over the
  /// rest.
  inline_executor(caf::actor_system& system, std::size_t turns_max)
      : caf::execution_unit(&system), turns_max_(turns_max) {}
  ~inline_executor() override;
  inline_executor(const inline_executor&) = delete;
  inline_executor& operator=(const inline_executor&) = delete;

  /// Sends a message; the receiver gets it in run(), unless it is running elsewhere.
  template <class Handle, class... Ts>
  void send(const Handle& to, Ts&&... what) {
    caf::actor_cast<caf::strong_actor_ptr>(to)->enqueue(
      nullptr, caf::make_message_id(), caf::make_message(std::forward<Ts>(what)...), this);
  }

  /// Runs the actors that have messages.
  void run();

  void exec_later(caf::resumable* job) override { jobs_.push_back(job); }

private:
  void leave_rest_to_scheduler();

  const std::size_t turns_max_;
  std::deque<caf::resumable*> jobs_; ///< Holds a reference to each.
};

} // namespace troupe
