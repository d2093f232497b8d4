// The devices of a machine: their memory, streams and events. Two kinds: CUDA's, and emulated ones,
// which are this host under another name, so that whatever uses devices is tested without a GPU.
//
// What is enqueued (copies, kernels, events) has no result of its own: what went wrong comes up
// when the stream is waited for. Users hold no handle from here but by the owners of memory.hpp.
//
// Thread safety: none; whoever needs one, on a thread of their own, opens one. It costs little.
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

/// A point in the work of a stream. Opaque: each platform derives its own, and deletes it as that.
struct device_event {};

class device_platform {
public:
  virtual ~device_platform() = default;

  /// Their numbers are 0 .. devices() - 1.
  virtual std::uint32_t devices() const = 0;
  virtual bool emulated() const = 0;
  /// Errors: device_failed, also for a device that is there no more.
  virtual result<device_info> describe(std::uint32_t device) = 0;

  /// Aligned for any type; with undefined content. Errors: device_failed, which says how much was
  /// free.
  virtual result<void*> allocate(std::uint32_t device, std::size_t bytes) = 0;
  /// Memory of the host that devices read and write directly, without the host's help.
  virtual result<void*> allocate_pinned(std::size_t bytes) = 0;
  virtual void release(std::uint32_t device, void* memory) noexcept = 0;
  virtual void release_pinned(void* memory) noexcept = 0;

  virtual result<kernels::stream> make_stream(std::uint32_t device) = 0;
  virtual result<device_event*> make_event(std::uint32_t device) = 0;
  virtual void release(const kernels::stream& at) noexcept = 0;
  virtual void release(device_event* event) noexcept = 0;

  /// Between any two of: memory of a device, pinned memory.
  virtual void copy(const kernels::stream& at, void* to, const void* from, std::size_t bytes) = 0;
  virtual void clear(const kernels::stream& at, void* memory, std::size_t bytes) = 0;
  /// The event is what has been enqueued on `at` up to now.
  virtual void record(const kernels::stream& at, device_event* event) = 0;
  /// What is enqueued from now on waits for the event, as it was recorded last.
  virtual void wait(const kernels::stream& at, device_event* event) = 0;

  /// Until all work of the stream is done. Errors: device_failed: the first thing that went wrong
  /// on this platform since an error was returned.
  virtual result<void> synchronize(const kernels::stream& at) = 0;
  /// The same for the event, as it was recorded last.
  virtual result<void> synchronize(device_event* event) = 0;
  /// Whether it has come to that. Errors: as above.
  virtual result<bool> done(device_event* event) = 0;
  /// Lets these devices read each other's memory without the host, where they can.
  virtual void link_replicas(std::span<const std::uint32_t> devices) = 0;
  /// Milliseconds between two events that are done.
  virtual double elapsed_ms(device_event* from, device_event* to) = 0;
};

/// Errors: device_failed: this program was built without CUDA, there is no driver, or no device.
result<std::unique_ptr<device_platform>> open_cuda();

} // namespace troupe
