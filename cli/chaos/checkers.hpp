// Whether a run under faults kept its promises: one function of its facts for each of them.
#pragma once

#include "cli/chaos/facts.hpp"

#include <string>
#include <vector>

namespace troupe::chaos {

enum class evaluation_message : std::uint8_t { holds, violated, not_judged };

struct check_result {
  std::string checker; ///< "C1 exactly once".
  evaluation_message verdict = evaluation_message::holds;
  std::string why; ///< What was seen, or why it cannot be judged.
};

check_result check_exactly_once(const run_facts& run);
check_result check_conservation(const run_facts& run);
/// With more than one replica no fault takes back what was acknowledged; not judged where faults
/// overlap.
check_result check_durability(const run_facts& run);
check_result check_checkpoints(const run_facts& run);
check_result check_full_disk(const run_facts& run);
/// Nobody is given up without a fault of its own.
check_result check_evictions(const run_facts& run);
check_result check_liveness(const run_facts& run);
check_result check_resources(const run_facts& run);
check_result check_vacuity(const run_facts& run);

/// All of them.
std::vector<check_result> check_all(const run_facts& run);

} // namespace troupe::chaos
