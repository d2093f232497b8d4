// A free list of equal arrays on one device: its thread lends them to other threads.
#pragma once

#include "kernels/devices/memory.hpp"
#include "kernels/devices/platform.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe {

/// Thread safety: take() is for the platform's thread; an array may be returned on any thread.
/// Lifetime: the memory and the platform live until the free list and all taken arrays are gone,
/// perhaps on another thread. So the platform must not be used after the free list is dropped.
/// Capacity: the largest number of arrays that were taken at the same time.
class device_buffer_pool {
public:
  device_buffer_pool() = default;
  device_buffer_pool(std::shared_ptr<device_platform> on, std::uint32_t device, std::size_t count);

  /// Returns f32[count] on the device, with undefined content. Errors: device_failed.
  result<std::shared_ptr<float>> take();

private:
  struct stock;
  std::shared_ptr<stock> stock_;
};

} // namespace troupe
