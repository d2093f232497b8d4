// Carries out a schedule on one thread, step by step, on vectors of float: the reference executor.
#pragma once

#include "kernels/schedules/schedule.hpp"

#include <vector>

namespace troupe::kernels {

/// Runs `plan`. Shapes: buffers f32[devices + staging][count], all of one count.
inline void interpret(const schedule& plan, std::vector<std::vector<float>>& buffers) {
  for (const auto& step : plan.steps) {
    const auto range = range_of_chunk(buffers[step.to].size(), plan.chunks, step.chunk);
    for (std::size_t i = range.begin; i < range.begin + range.size; ++i)
      buffers[step.to][i] = step.kind == step_kind::copy
                              ? buffers[step.from][i]
                              : buffers[step.to][i] + buffers[step.from][i];
  }
}

} // namespace troupe::kernels
