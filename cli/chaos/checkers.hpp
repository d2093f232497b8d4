// Whether a run under faults kept its promises: one function of its facts for each of them.
#pragma once

#include "cli/chaos/facts.hpp"

#include <string>
#include <vector>

namespace troupe::chaos {

enum class judgement : std::uint8_t { holds, violated, not_judged };

struct finding {
  std::string checker; ///< "C1 exactly once".
  judgement verdict = judgement::holds;
  std::string why; ///< What was seen, or why it cannot be judged.
};

finding check_exactly_once(const run_facts& run);
finding check_conservation(const run_facts& run);
/// With more than one replica no fault takes back what was acknowledged; not judged where faults
/// overlap.
finding check_durability(const run_facts& run);
finding check_checkpoints(const run_facts& run);
finding check_full_disk(const run_facts& run);
/// Nobody is given up without a fault of its own.
finding check_evictions(const run_facts& run);
finding check_liveness(const run_facts& run);
finding check_resources(const run_facts& run);
finding check_vacuity(const run_facts& run);

/// All of them.
std::vector<finding> judge(const run_facts& run);

} // namespace troupe::chaos
