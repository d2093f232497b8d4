// Shares the devices of this process among its workers.
#pragma once

#include "kernels/devices/device_choice.hpp"
#include "kernels/devices/device_group.hpp"
#include "kernels/devices/emulated_platform.hpp"
#include "kernels/devices/shared_parameters.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace async_sgd {

/// The state that devices of one kind share.
struct device_state {
  std::shared_ptr<troupe::device_group> group; ///< Adds up gradients that were left on devices.
  std::shared_ptr<troupe::shared_parameters> parameters =
    std::make_shared<troupe::shared_parameters>();
};

/// Opens devices when they are first needed. Thread-safe.
class shared_devices {
public:
  /// `places` are for workers in turn. Each worker of a process has an emulated device of its own.
  shared_devices(std::vector<troupe::device_place> places, std::uint32_t workers_per_process);

  troupe::device_place place_of(std::uint32_t worker) const;

  /// Returns a platform for the caller's thread. Errors: device_failed. Requires: `kind` is not the
  /// CPU.
  troupe::result<std::shared_ptr<troupe::device_platform>> open(troupe::device_kind kind) const;
  const device_state& state_of(troupe::device_kind kind) const {
    return kind == troupe::device_kind::cuda ? cuda_ : emulated_;
  }
  troupe::copied_bytes copied_by_emulated() const { return machine_.copied(); }

private:
  std::vector<troupe::device_place> places_;
  std::uint32_t workers_per_process_;
  troupe::emulated_machine machine_;
  device_state cuda_, emulated_;
};

} // namespace async_sgd
