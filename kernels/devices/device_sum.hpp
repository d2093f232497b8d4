// Adds up what lies on several devices, and brings the sum to the host once.
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
  /// What connects so many devices; a schedule is planned for it. Empty: all on one switch.
  std::function<kernels::topology(std::uint32_t devices)> net = {};
  /// Where it is there, it adds up in place of schedules, in an order of its own. May be empty.
  std::function<result<nccl_api>()> nccl = {};
  /// Told, in one line, how devices add up, and what does not work. May be empty.
  std::function<void(const std::string&)> tell = {};
};

/// Memory of a device that is added up with that of others.
struct device_share {
  std::uint32_t device = 0;
  std::span<const float> values;
  std::span<const float> factors; ///< One for each stretch.
};

/// Values of a device in memory of the host: cut, one stretch after the other, as long as these.
using host_stretches = std::span<const std::span<float>>;

/// Thread safety: none.
/// Determinism: a share's place among those of its device, then the schedule's order, which depends
/// on the set of devices alone: which device comes first changes no byte.
/// Capacity: on each device an array as long as the values, and what a schedule needs; on the host
/// one, pinned. Schedules are kept for some sets of devices.
class device_sum {
public:
  /// For values of `count` floats, at least one.
  device_sum(std::unique_ptr<device_platform> on, const device_sum_options& options,
             std::size_t count);

  std::size_t count() const { return count_; }

  /// to[k][i] = factors[k] * values[k][i], added up over the shares; these stay as they are.
  /// Requires: shares are complete, their streams were waited for.
  /// Errors: device_failed; this is then to be made anew.
  result<void> add_up(std::span<const device_share> shares, host_stretches to);

  /// The values as they are. Requires and errors: as above.
  result<void> fetch(std::uint32_t device, std::span<const float> values, host_stretches to);

private:
  using device_list = std::vector<std::uint32_t>;

  struct slot {
    owned_stream stream;
    device_memory<float> sum, received; ///< The second one for NCCL alone.
  };

  /// Devices that add up by one schedule.
  struct team {
    std::optional<device_executor> executor; ///< None: there is one device.
    std::vector<std::uint32_t> homes{0};     ///< Of each chunk: which of them has the sum.
  };

  result<slot*> slot_at(std::uint32_t device);
  result<void> gather(std::uint32_t device, std::span<const device_share> shares,
                      host_stretches to);
  result<team*> team_of(const device_list& devices);
  bool has_nccl();
  result<void> reduce(const device_list& devices);
  result<void> reduce_by_nccl(const device_list& devices);
  void tell(const std::string& line) const;
  void land(const slot& from, std::span<const float> values, std::size_t first);
  result<void> synchronize(const device_list& devices);
  result<void> hand_out(const device_list& devices, host_stretches to);

  std::unique_ptr<device_platform> on_; ///< First: all others give back to it.
  device_sum_options options_;
  std::size_t count_;
  std::map<std::uint32_t, slot> slots_;
  std::map<device_list, team> teams_;
  std::optional<nccl_api> nccl_; ///< None: it is missing, or has failed.
  std::map<device_list, nccl_group> connected_;
  pinned_memory<float> landing_;
};

} // namespace troupe
