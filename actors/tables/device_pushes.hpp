// Adds up pushes whose values were left on devices, or copies these values to the host.
#pragma once

#include "base/buffer.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"
#include "serialization/push_pull.hpp"

#include <memory>
#include <span>

namespace troupe {

using push_ptr = std::shared_ptr<const push_request>;

/// Returns the push with its values on the host. Errors: device_failed: they are lost.
result<push_ptr> bring_to_host(push_ptr push, buffer_pool& pool);

/// Adds up pushes as add_up() (gradient_sum.hpp) does. Works on the devices, in an order of its
/// own, if all pushes were left on devices of one group (device_group.hpp); else on the host.
/// Errors: device_failed; sum_not_applicable: they have different ranges, or a norm is not finite.
/// The pushes are then unchanged.
result<push_ptr> add_up_anywhere(const job_spec& job, std::span<const push_ptr> pushes,
                                 buffer_pool& pool);

/// Returns whether add_up_anywhere() works on the devices.
bool are_on_one_group(std::span<const push_ptr> pushes);

} // namespace troupe
