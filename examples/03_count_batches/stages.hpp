// Stages that pass everything on, and stages that each break a rule of stages.
#pragma once

#include "actors/graph/nodes/path.hpp"

#include <string>
#include <vector>

namespace count_batches {

/// Returns the names of stages with a mistake.
std::vector<std::string> mistakes();

/// Returns the stage of a graph of this name; an empty list if it has none of its own.
troupe::stage_list stages_of(const std::string& graph);

} // namespace count_batches
