// Converts a table's optimiser to the options of the kernels.
#pragma once

#include "kernels/optimizer.hpp"
#include "serialization/job.hpp"

#include <cstdint>

namespace troupe {

kernels::optimizer kernel_of(optimizer_kind kind);

/// Returns the options of step `step` (from 1) on some weights, without clipping by norm.
kernels::step_options options_of(const optimizer_spec& x, std::uint64_t step);

/// Returns the factor of clipping by norm: min(1, clip_norm / norm).
float clip_scale(const optimizer_spec& x, float gradient_norm);

} // namespace troupe
