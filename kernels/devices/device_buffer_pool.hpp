// Arrays of one size on one device that their thread hands to others, who give them back.
#pragma once

#include "kernels/devices/memory.hpp"
#include "kernels/devices/platform.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe {

/// Thread safety: take() is for the platform's thread; what was taken may be given back on any.
/// Lifetime: the memory and the platform live until the shelf and all that was taken are gone,
/// which may be on another thread; so whoever drops the shelf is done with the platform.
/// Capacity: as many arrays as were ever out at the same time.
class device_buffer_pool {
public:
  device_buffer_pool() = default;
  device_buffer_pool(std::shared_ptr<device_platform> on, std::uint32_t device, std::size_t count);

  /// f32[count] on the device, with undefined content. Errors: device_failed.
  result<std::shared_ptr<float>> take();

private:
  struct stock;
  std::shared_ptr<stock> stock_;
};

} // namespace troupe
