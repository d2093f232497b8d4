// Gradients on the device that a worker was given.
#pragma once

#include "actors/graph/options/options.hpp"
#include "examples/02_async_sgd/model.hpp"
#include "examples/02_async_sgd/shared_devices.hpp"
#include "kernels/devices/device_choice.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace async_sgd {

/// Where workers compute, one after the other, from what `--device` says and this machine has. Says
/// on the standard error stream what does not go without saying: that auto means the CPU, and why.
/// Errors: invalid_argument; device_failed, where what was asked for by name is not there.
troupe::result<std::vector<troupe::device_place>>
choose_places(const std::string& text, const model& shape, const troupe::run_options& options);

/// A trainer at that place. Throws what goes wrong, in one line, as its gradient() does; on the CPU
/// it is make_trainer().
std::unique_ptr<troupe::trainer> make_trainer_at(const troupe::device_place& place,
                                                 const shared_devices& devices, const model& shape,
                                                 std::shared_ptr<const dataset> data);

} // namespace async_sgd
