// Devices that are emulated on the host. Streams do their work as late as they may, and in an order
// drawn from a seed: whoever forgets to wait for an event or a stream reads what was there before.
#pragma once

#include "kernels/devices/platform.hpp"

#include <cstdint>
#include <memory>

namespace troupe {

struct emulation_options {
  std::uint32_t devices = 1;
  std::uint64_t memory_bytes = std::uint64_t{1} << 32; ///< Of each device.
  std::uint64_t seed = 1; ///< Which stream goes on next, of those that may.
};

class emulated_platform : public device_platform {
public:
  /// From now on the device fails at whatever is asked of it, as one that fell off its bus.
  virtual void lose(std::uint32_t device) = 0;
};

std::unique_ptr<emulated_platform> emulate_devices(const emulation_options& options);

} // namespace troupe
