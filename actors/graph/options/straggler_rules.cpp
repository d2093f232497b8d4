#include "actors/graph/options/straggler_rules.hpp"

#include <algorithm>

namespace troupe {

straggler_measure strongest_possible(const run_options& options) {
  if (options.sync.traits().one_memory)
    return straggler_measure::warned;
  return options.mode() == run_mode::processes ? straggler_measure::evicted
                                               : straggler_measure::demoted;
}

std::optional<straggler_options> straggler_rules(const run_options& options) {
  if (!options.workers.stragglers)
    return std::nullopt;
  straggler_options rules;
  rules.strongest = std::min(*options.workers.stragglers, strongest_possible(options));
  return hurried(rules, options.workers.straggler_time_scale);
}

} // namespace troupe
