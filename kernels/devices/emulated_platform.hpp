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

/// By all openings of a machine: between pinned memory and devices, and from device to device.
struct copied_bytes {
  std::uint64_t to_devices = 0;
  std::uint64_t from_devices = 0;
  std::uint64_t between_devices = 0;
};

/// Devices that several threads share, each by a platform of its own, as those of CUDA.
/// Thread-safe. Whoever reads what another platform wrote must know that it is done.
class emulated_machine {
public:
  explicit emulated_machine(const emulation_options& options);

  std::unique_ptr<emulated_platform> open() const;
  copied_bytes copied() const;

  class memory; ///< Private to the implementation.

private:
  std::shared_ptr<memory> memory_;
};

/// Those of a machine that nobody else opens.
std::unique_ptr<emulated_platform> emulate_devices(const emulation_options& options);

} // namespace troupe
