#include "actors/graph/options/straggler_rules.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace troupe {
namespace {

/// Returns the strongest measure that keeps the guarantees of the mode.
straggler_measure least_possible(const run_options& options) {
  if (options.sync.traits().one_memory)
    return straggler_measure::warned;
  return options.mode() == run_mode::processes ? straggler_measure::evicted
                                               : straggler_measure::demoted;
}

} // namespace

result<void> validate_stragglers(const run_options& options) {
  const auto invalid = [](std::string text) {
    return result<void>{errc::invalid_argument, std::move(text)};
  };
  if (options.workers.backups > 0 && !options.sync.traits().clock_updates)
    return invalid("--backup-workers needs --sync bsp: with --sync " + to_string(options.sync)
                   + " no update waits for all workers");
  if (options.workers.backups > options.workers.count)
    return invalid("--backup-workers must be at most --workers ("
                   + std::to_string(options.workers.count) + "), not "
                   + std::to_string(options.workers.backups));
  const auto possible = least_possible(options);
  if (!options.given.contains("--stragglers") || !options.workers.stragglers
      || *options.workers.stragglers <= possible)
    return {};
  return possible == straggler_measure::warned
           ? invalid("--sync " + to_string(options.sync)
                     + " would not notice that a batch is done twice: use --stragglers "
                       "warn or off")
           : invalid(std::string{options.mode() == run_mode::threads ? "--threads" : "--simulate"}
                     + " cannot start a worker again: use --stragglers demote");
}

std::optional<straggler_options> straggler_rules(const run_options& options) {
  if (!options.workers.stragglers)
    return std::nullopt;
  straggler_options rules;
  rules.strongest = std::min(*options.workers.stragglers, least_possible(options));
  return hurried(rules, options.workers.straggler_time_scale);
}

} // namespace troupe
