// Shares the devices of a process's workers among threads that add up the values left there.
#pragma once

#include "base/error.hpp"
#include "kernels/devices/device_sum.hpp"
#include "kernels/devices/platform.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace troupe {

/// Thread-safe: opens its own platform, and does one thing at a time. After an error it starts anew
/// with the devices present then.
class device_group {
public:
  /// Called when first needed, and again after an error.
  using opener = std::function<result<std::unique_ptr<device_platform>>()>;

  explicit device_group(opener open, device_sum_options options = {})
      : open_(std::move(open)), options_(std::move(options)) {}

  /// Is device_sum::add_up(). Errors: device_failed; then fetch() may still get single values.
  result<void> add_up(std::span<const device_share> shares, host_stretches to);
  result<void> fetch(std::uint32_t device, std::span<const float> values, host_stretches to);

private:
  template <class Work>
  result<void> with_devices(host_stretches to, Work work);
  void tell(const std::string& line) const;

  const opener open_;
  const device_sum_options options_;
  std::mutex mutex_; ///< Guards the members below.
  std::unique_ptr<device_sum> open_sum_;
  bool sums_fail_ = false;              ///< The last sum failed.
  std::set<std::uint32_t> fetch_fails_; ///< Devices whose last fetch failed.
};

/// Values that were left on a device of a group.
struct device_values {
  std::shared_ptr<device_group> group;
  std::uint32_t device = 0;
  std::span<const float> values;      ///< Complete and no longer written to.
  std::shared_ptr<const void> memory; ///< Keeps the values alive.
};

} // namespace troupe
