// Adds up values that lie on several devices, and copies the sum to the host once.
#pragma once

#include "kernels/devices/device_executor.hpp"
#include "kernels/devices/memory.hpp"
#include "kernels/devices/nccl.hpp"
#include "kernels/devices/platform.hpp"
#include "kernels/schedules/collect.hpp"
#include "kernels/schedules/topology.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

struct device_sum_options {
  /// Topology of a number of devices; a schedule is planned for it. Empty: all on one switch.
  std::function<kernels::topology(std::uint32_t devices)> net = {};
  /// If loaded, NCCL replaces schedules, with its own order of addition. May be empty.
  std::function<result<nccl_api>()> nccl = {};
  /// Gets one line on how devices add up, or on a failure. May be empty.
  std::function<void(const std::string&)> tell = {};
};

/// A device's values, to be added up with those of others.
struct device_share {
  std::uint32_t device = 0;
  std::span<const float> values;
  std::span<const float> factors; ///< One factor for each of the host's stretches.
};

/// Memory of the host for a device's values, cut into consecutive stretches of these lengths.
using host_stretches = std::span<const std::span<float>>;

/// Thread safety: none.
/// Determinism: adds a device's shares in the given order, then in the schedule's order. That order
/// depends only on the set of devices, so the first share's device changes no byte.
/// Capacity: on each device an array as long as the values, and the memory of a schedule; on the
/// host one pinned array. Schedules are kept for at most 16 sets of devices.
class device_sum {
public:
  /// For values of `count` floats, at least one.
  device_sum(std::unique_ptr<device_platform> on, const device_sum_options& options,
             std::size_t count);

  std::size_t count() const { return count_; }

  /// Sets to[k][i] = factors[k] * values[k][i], added up over the shares, which stay unchanged.
  /// Requires: shares are complete, their streams were waited for. Errors: device_failed; this
  /// object must then be replaced.
  result<void> add_up(std::span<const device_share> shares, host_stretches to);

  /// Copies the values unchanged. Requirements and errors are those of add_up().
  result<void> fetch(std::uint32_t device, std::span<const float> values, host_stretches to);

private:
  using device_list = std::vector<std::uint32_t>;

  struct slot {
    owned_stream stream;
    device_memory<float> sum, received; ///< `received` is for NCCL alone.
  };

  /// Devices that add up by one schedule.
  struct device_plan {
    std::optional<device_executor> executor; ///< Nullopt if there is one device.
    std::vector<std::uint32_t> homes{0};     ///< For each chunk: the index of the device with its
                                             ///< sum.
  };

  result<slot*> slot_at(std::uint32_t device);
  result<void> gather(std::uint32_t device, std::span<const device_share> shares,
                      host_stretches to);
  result<device_plan*> plan_of(const device_list& devices);
  bool has_nccl();
  result<void> reduce(const device_list& devices);
  result<void> reduce_by_nccl(const device_list& devices);
  void tell(const std::string& line) const;
  void land(const slot& from, std::span<const float> values, std::size_t first);
  result<void> synchronize(const device_list& devices);
  result<void> hand_out(const device_list& devices, host_stretches to);

  std::unique_ptr<device_platform> on_; ///< First, because all others release their memory to it.
  device_sum_options options_;
  std::size_t count_;
  std::map<std::uint32_t, slot> slots_;
  std::map<device_list, device_plan> plans_;
  std::optional<nccl_api> nccl_; ///< Nullopt if NCCL is missing or has failed.
  std::map<device_list, nccl_group> connected_;
  pinned_memory<float> landing_;
};

} // namespace troupe
