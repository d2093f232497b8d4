// Formats a run under faults and its verdict for people.
#pragma once

#include "cli/chaos/checkers.hpp"
#include "cli/chaos/facts.hpp"

#include <string>
#include <vector>

namespace troupe::chaos {

/// Returns "once" or "3 times".
std::string times(std::uint64_t count);
/// Returns lines that count faults and events of the run.
std::string counts_text(const run_facts& run);
/// Returns one line for each checker.
std::string findings_text(const std::vector<check_result>& results);
/// Returns the names of the checkers that found a violation, "C1 exactly once, C10 liveness";
/// empty: none did.
std::string violated(const std::vector<check_result>& results);

} // namespace troupe::chaos
