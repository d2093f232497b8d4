// The devices of a machine: their memory, streams and events. There are two kinds: CUDA devices,
// and devices emulated on this host, so that all users of devices are tested without a GPU.
//
// Enqueued work (copies, kernels, events) has no result of its own; a wait for the stream reports
// its errors. Users hold handles only by the owners of memory.hpp.
//
// Thread safety: none. Each thread opens its own platform, which costs little.
#pragma once

#include "base/error.hpp"
#include "kernels/device_stream.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace troupe {

struct device_info {
  std::string name;
  std::uint64_t memory_bytes = 0;
  std::uint64_t free_bytes = 0;
};

/// A point in the work of a stream. Opaque: each platform derives its own type and deletes it.
struct device_event {};

class device_platform {
public:
  virtual ~device_platform() = default;

  /// Returns the number of devices; they are numbered 0 .. devices() - 1.
  virtual std::uint32_t devices() const = 0;
  virtual bool emulated() const = 0;
  /// Errors: device_failed, also for a lost device.
  virtual result<device_info> describe(std::uint32_t device) = 0;

  /// Returns memory aligned for any type, with undefined content. Errors: device_failed, whose text
  /// names the free bytes.
  virtual result<void*> allocate(std::uint32_t device, std::size_t bytes) = 0;
  /// Returns memory of the host that devices read and write directly.
  virtual result<void*> allocate_pinned(std::size_t bytes) = 0;
  virtual void release(std::uint32_t device, void* memory) noexcept = 0;
  virtual void release_pinned(void* memory) noexcept = 0;

  virtual result<kernels::stream> make_stream(std::uint32_t device) = 0;
  virtual result<device_event*> make_event(std::uint32_t device) = 0;
  virtual void release(const kernels::stream& at) noexcept = 0;
  virtual void release(device_event* event) noexcept = 0;

  /// Enqueues a copy between memory of devices and pinned memory, in any combination.
  virtual void copy(const kernels::stream& at, void* to, const void* from, std::size_t bytes) = 0;
  virtual void clear(const kernels::stream& at, void* memory, std::size_t bytes) = 0;
  /// Makes the event stand for all work enqueued on `at` so far.
  virtual void record(const kernels::stream& at, device_event* event) = 0;
  /// Makes all later work on `at` wait for the event, as it was last recorded.
  virtual void wait(const kernels::stream& at, device_event* event) = 0;

  /// Blocks until all work of the stream is done. Errors: device_failed: the first error on this
  /// platform since the last returned one.
  virtual result<void> synchronize(const kernels::stream& at) = 0;
  /// Blocks until the event, as last recorded, is reached. Errors: as above.
  virtual result<void> synchronize(device_event* event) = 0;
  /// Returns whether the event is reached. Errors: as above.
  virtual result<bool> done(device_event* event) = 0;
  /// Lets these devices read each other's memory without the host, if they can.
  virtual void link_replicas(std::span<const std::uint32_t> devices) = 0;
  /// Returns the milliseconds between two reached events.
  virtual double elapsed_ms(device_event* from, device_event* to) = 0;
};

/// Errors: device_failed: this program was built without CUDA, or there is no driver or device.
result<std::unique_ptr<device_platform>> open_cuda();

} // namespace troupe
