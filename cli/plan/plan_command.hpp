// `troupe plan` finds aggregation strategies, sizes parameter servers, and predicts pipelines.
#pragma once

#include "cli/command.hpp"
#include "kernels/schedules/planner.hpp"

#include <string>
#include <vector>

namespace troupe {

command plan_command(CLI::App& app);

/// Returns a table of all strategies, the choice and why; several lines.
std::string plan_text(const kernels::routing& ways, double bytes,
                      const std::vector<kernels::strategy_plan>& plans);

} // namespace troupe
