// A stage that does its work, and stages that each break a rule of stages.
#pragma once

#include "actors/graph/nodes/path.hpp"
#include "serialization/push_pull.hpp"

#include <string>
#include <vector>

namespace count_batches {

/// Returns whether the graph has a stage that halves gradients.
inline bool has_halves(const std::string& graph) { return graph == "stage" || graph == "raw"; }
/// Halves the values of a push.
void halve(troupe::push_request& push);

/// Returns the names of stages with a mistake.
std::vector<std::string> mistakes();

/// Returns the stage of a graph of this name; an empty list if it has none of its own.
troupe::stage_list stages_of(const std::string& graph);

} // namespace count_batches
