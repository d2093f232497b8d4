// Carries out a schedule (kernels/schedules/schedule.hpp) between devices of this process. Copies
// go from device to device, directly over NVLink or PCIe if the devices can; the receiving device
// adds. Staging places are pinned memory of the host.
//
// Determinism: bitwise: each sum is added up in the order of the schedule's list.
#pragma once

#include "kernels/devices/memory.hpp"
#include "kernels/devices/platform.hpp"
#include "kernels/schedules/schedule.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

struct device_executor_options {
  /// Streams of each place. A step works on stream (chunk mod `streams`) of its receiver. With more
  /// streams a chunk is added while the next one arrives. Changes no result.
  std::uint32_t streams = 2;
};

class device_executor {
public:
  /// Prepares for buffers of `count` floats. devices[d]: the device for the plan's device d;
  /// devices may repeat. Borrows the platform. Errors: device_failed; invalid_argument: a plan of
  /// other devices.
  static result<device_executor> make(device_platform& on, kernels::schedule plan,
                                      std::vector<std::uint32_t> devices, std::size_t count,
                                      device_executor_options options = {});

  /// Adds up; complete when it returns. Shapes: one buffer f32[count] for each device, on it.
  /// Requires: the buffers are complete, their streams were waited for. Errors: device_failed; the
  /// buffers are then undefined.
  result<void> run(std::span<const std::span<float>> buffers);

private:
  struct step_plan {
    kernels::schedule_step step;
    kernels::chunk_range range;
    std::uint32_t stream;             ///< Index in streams_.
    std::vector<std::uint32_t> waits; ///< Earlier steps on other streams.
    bool awaited = false;             ///< A later step on another stream waits for this step.
  };

  explicit device_executor(device_platform& on) : on_(&on) {}
  result<void> prepare(const kernels::schedule& plan, const std::vector<std::uint32_t>& devices,
                       std::size_t count, std::uint32_t streams);

  device_platform* on_;
  std::vector<step_plan> steps_;
  std::vector<owned_stream> streams_;
  std::vector<device_memory<float>> arrivals_; ///< For each stream: a received chunk that will be
                                               ///< added.
  std::vector<owned_event> events_;            ///< For each awaited step, else empty.
  std::vector<pinned_memory<float>> staging_;
  std::uint32_t devices_ = 0;
  std::size_t count_ = 0;
};

} // namespace troupe
