// Emulates devices on the host. Streams work as late as they may, in an order drawn from a seed. So
// a missing wait for an event or a stream reads old content.
#pragma once

#include "kernels/devices/platform.hpp"

#include <cstdint>
#include <memory>

namespace troupe {

struct emulation_options {
  std::uint32_t devices = 1;
  std::uint64_t memory_bytes = std::uint64_t{1} << 32; ///< Of each device.
  std::uint64_t seed = 1; ///< Chooses the stream that goes on next, among those that may.
};

class emulated_platform : public device_platform {
public:
  /// Makes the device fail at every later call, as a GPU that fell off its bus.
  virtual void lose(std::uint32_t device) = 0;
};

/// Bytes copied by all platforms of a machine between pinned memory and devices, and between
/// devices.
struct copied_bytes {
  std::uint64_t to_devices = 0;
  std::uint64_t from_devices = 0;
  std::uint64_t between_devices = 0;
};

/// Devices that several threads share, each by its own platform, as with CUDA. Thread-safe. A
/// thread that reads another platform's results must know that they are complete.
class emulated_machine {
public:
  explicit emulated_machine(const emulation_options& options);

  std::unique_ptr<emulated_platform> open() const;
  copied_bytes copied() const;

  class memory; ///< Private to the implementation.

private:
  std::shared_ptr<memory> memory_;
};

/// Returns the devices of a machine that no other platform shares.
std::unique_ptr<emulated_platform> emulate_devices(const emulation_options& options);

} // namespace troupe
