// Checks a run under faults: one function of its facts for each promise.
#pragma once

#include "cli/chaos/facts.hpp"

#include <string>
#include <vector>

namespace troupe::chaos {

enum class check_outcome : std::uint8_t { holds, violated, not_judged };

struct check_result {
  std::string checker; ///< "C1 exactly once".
  check_outcome verdict = check_outcome::holds;
  std::string why; ///< The observation, or why it cannot be checked.
};

check_result check_exactly_once(const run_facts& run);
check_result check_conservation(const run_facts& run);
/// Checks that with several replicas no fault takes back an acknowledged push.
/// Overlapping faults are not judged.
check_result check_durability(const run_facts& run);
check_result check_checkpoints(const run_facts& run);
check_result check_full_disk(const run_facts& run);
/// Checks that no process is given up without a fault of its own.
check_result check_evictions(const run_facts& run);
check_result check_liveness(const run_facts& run);
check_result check_resources(const run_facts& run);
check_result check_vacuity(const run_facts& run);

/// Runs all checkers.
std::vector<check_result> check_all(const run_facts& run);

} // namespace troupe::chaos
