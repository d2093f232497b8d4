// Stages for tests: one passes everything on, each of the others breaks a rule of stages.
#pragma once

#include "actors/graph/nodes/path.hpp"

#include <string>
#include <vector>

namespace count_batches {

std::vector<std::string> stage_names();

/// Returns the stage of this name, and an empty list for "none".
troupe::stage_list stages_of(const std::string& name);

} // namespace count_batches
