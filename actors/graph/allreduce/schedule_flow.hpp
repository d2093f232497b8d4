// One rank's part of a schedule where ranks send each other messages: which chunk it sends next,
// and which of those that arrived it takes. A plain state machine: no link, no clock.
//
//   own steps, in the schedule's order      begins when
//   this rank's chunk goes to another one   all own steps before it have begun
//   another one's chunk is taken here       so have they, it has arrived, and no message that is
//                                           still on its way is read from where it goes
//
// Sends do not wait to be received, so the earliest step of all that was not done can always be
// done: ranks that go by one schedule never wait in a circle.
#pragma once

#include "kernels/schedules/schedule.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe {

/// A rank's steps of a schedule without staging places.
struct flow_plan {
  struct own_step {
    std::uint32_t number = 0; ///< In the schedule: equal on both sides of a message.
    kernels::schedule_step step;
  };

  std::uint32_t rank = 0;
  std::uint32_t chunks = 0;
  std::uint64_t fingerprint = 0;
  std::vector<own_step> steps;
};
/// Requires: rank < plan.devices; no fault_of(plan); no staging places.
flow_plan plan_of_rank(const kernels::schedule& plan, std::uint32_t rank);

class schedule_flow {
public:
  schedule_flow() = default;
  /// Borrowed: `plan` outlives this.
  explicit schedule_flow(const flow_plan& plan);

  /// The step to do now: to send its chunk, or to take it; none: something has to happen first. It
  /// counts as begun. A chunk that is sent is on its way until left() is called. `may_send`: else a
  /// step that sends, and those behind it, have to wait.
  std::optional<flow_plan::own_step> next(bool may_send = true);
  /// A message brought the chunk of a step. False: no message of this rank's schedule, or one that
  /// was there before.
  bool arrived(std::uint32_t number, std::uint32_t from);
  /// Nobody reads the chunk of a message any more from where it was sent.
  void left(std::uint32_t chunk);
  /// Whether a chunk of that rank has still to arrive.
  bool awaits(std::uint32_t from) const;
  /// All steps have been done, and nothing is on its way.
  bool done() const { return plan_ && begun_ == plan_->steps.size() && on_way_ == 0; }

private:
  const flow_plan* plan_ = nullptr;
  std::size_t begun_ = 0;
  std::vector<bool> arrived_;          ///< By own step.
  std::vector<std::uint32_t> leaving_; ///< By chunk: messages that are on their way.
  std::uint32_t on_way_ = 0;
};

} // namespace troupe
