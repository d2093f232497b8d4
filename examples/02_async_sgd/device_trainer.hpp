// Computes a worker's gradients on the device assigned to it.
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

/// Returns the places where workers compute, in turn, by `--device` and this machine's devices.
/// Writes to standard error if auto falls back to the CPU, and why. Errors: invalid_argument;
/// device_failed, if a device requested by name is not there.
troupe::result<std::vector<troupe::device_place>>
choose_places(const std::string& text, const model& shape, const troupe::run_options& options);

/// Returns a trainer at that place; on the CPU it is that of make_trainer(). It and its gradient()
/// throw errors of one line.
std::unique_ptr<troupe::trainer> make_trainer_at(const troupe::device_place& place,
                                                 const shared_devices& devices, const model& shape,
                                                 std::shared_ptr<const dataset> data);

} // namespace async_sgd
