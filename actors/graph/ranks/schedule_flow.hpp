// Orders one rank's steps of a schedule where ranks send each other messages: which chunk to send
// next, and which arrived chunk to take. A plain state machine: no link, no clock.
//
//   own step, in the schedule's order   begins when
//   send a chunk to another rank        all own steps before it have begun
//   take another rank's chunk           all own steps before it have begun, the chunk has arrived,
//                                       and no message still on its way is read from its place
//
// A send does not wait for its receiver, so the earliest undone step of all ranks can always be
// done: ranks that follow one schedule never deadlock.
#pragma once

#include "kernels/schedules/schedule.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe {

/// A rank's steps of a schedule without staging places.
struct flow_plan {
  struct own_step {
    std::uint32_t number = 0; ///< Number in the schedule, equal on both sides of a message.
    kernels::schedule_step step;
  };

  std::uint32_t rank = 0;
  std::uint32_t chunks = 0;
  std::uint64_t fingerprint = 0;
  std::vector<own_step> steps;
};
/// Returns a rank's steps. Requires: rank < plan.devices; no fault_of(plan); no staging places.
flow_plan plan_of_rank(const kernels::schedule& plan, std::uint32_t rank);

class schedule_flow {
public:
  schedule_flow() = default;
  /// Borrowed: `plan` outlives this.
  explicit schedule_flow(const flow_plan& plan);

  /// Begins and returns the next step, which sends or takes its chunk; nullopt: an event has to
  /// happen first. A chunk that is sent is on its way until left() is called. If `may_send` is
  /// false, a step that sends has to wait, and with it the steps behind it.
  std::optional<flow_plan::own_step> next(bool may_send = true);
  /// Takes note of the message of a step. Returns false if it is no message to this rank in the
  /// schedule, or a repeated one.
  bool arrived(std::uint32_t number, std::uint32_t from);
  /// Takes note that a message no longer reads the chunk from its place here.
  void left(std::uint32_t chunk);
  /// Returns whether a chunk from that rank has still to arrive.
  bool awaits(std::uint32_t from) const;
  /// Returns whether all steps are done and no message is on its way.
  bool done() const { return plan_ && begun_ == plan_->steps.size() && on_way_ == 0; }

private:
  const flow_plan* plan_ = nullptr;
  std::size_t begun_ = 0;
  std::vector<bool> arrived_;          ///< By own step.
  std::vector<std::uint32_t> leaving_; ///< By chunk: messages on their way.
  std::uint32_t on_way_ = 0;
};

} // namespace troupe
