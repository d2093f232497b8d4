// Declares server functions that show what Troupe does with those that keep the rules, and with
// those that do not.
#pragma once

#include "troupe/troupe.hpp"

#include <string>
#include <vector>

namespace count_batches {

/// Returns the values of --function.
std::vector<std::string> function_names();
/// Adds the functions to the program.
void add_functions(troupe::program& program);

} // namespace count_batches
