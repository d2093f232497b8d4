// A run under faults and its verdict, for people.
#pragma once

#include "cli/chaos/checkers.hpp"
#include "cli/chaos/facts.hpp"

#include <string>
#include <vector>

namespace troupe::chaos {

/// "once", "3 times".
std::string times(std::uint64_t count);
/// What ran, in lines.
std::string counts_text(const run_facts& run);
/// One line for each checker.
std::string findings_text(const std::vector<check_result>& results);
/// Names of the checkers that found a violation, "C1 exactly once, C10 liveness"; empty: none did.
std::string violated(const std::vector<check_result>& results);

} // namespace troupe::chaos
