// Pushes whose values were left on devices: added up there, or brought to the host.
#pragma once

#include "base/buffer.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"
#include "serialization/push_pull.hpp"

#include <memory>
#include <span>

namespace troupe {

using push_ptr = std::shared_ptr<const push_request>;

/// The push, with its values on the host. Errors: device_failed: they are lost.
result<push_ptr> bring_to_host(push_ptr push, buffer_pool& pool);

/// As add_up() (gradient_sum.hpp). On the devices where all of the pushes were left on those of one
/// group (device_group.hpp), in an order of its own; else on the host.
/// Errors: device_failed; sum_not_applicable: they bring different ranges, or one has a norm that
/// is not finite. The pushes are then as they were.
result<push_ptr> add_up_anywhere(const job_spec& job, std::span<const push_ptr> pushes,
                                 buffer_pool& pool);

/// Whether add_up_anywhere() does it on the devices.
bool are_on_one_group(std::span<const push_ptr> pushes);

} // namespace troupe
