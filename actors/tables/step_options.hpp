// A table's optimiser as the kernels understand it.
#pragma once

#include "kernels/optimizer.hpp"
#include "serialization/job.hpp"

#include <cstdint>

namespace troupe {

kernels::optimizer kernel_of(optimizer_kind kind);

/// Options of step `step` (from 1) on some weights, without clipping by norm.
kernels::step_options options_of(const optimizer_spec& x, std::uint64_t step);

/// What clipping by norm multiplies a gradient with: min(1, clip_norm / norm).
float clip_scale(const optimizer_spec& x, float gradient_norm);

} // namespace troupe
