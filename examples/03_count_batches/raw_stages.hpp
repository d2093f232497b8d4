// Stages that are CAF actors: one that does its work, and some that break a rule of stages.
#pragma once

#include "actors/graph/nodes/path.hpp"

#include <string>
#include <vector>

namespace count_batches {

/// Returns the names of raw stages with a mistake.
std::vector<std::string> raw_mistakes();

/// Returns the raw stage of a graph of this name; an empty list if it has none.
troupe::stage_list raw_stages_of(const std::string& graph);

} // namespace count_batches
