#include "actors/graph/options/straggler_flags.hpp"

#include "base/quote.hpp"

#include "CLI/CLI.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {
namespace {

/// The measures by growing force. "off" is not a measure.
constexpr std::array<std::pair<std::string_view, straggler_measure>, 4> measures{{
  {"warn", straggler_measure::warned},
  {"rebalance", straggler_measure::rebalanced},
  {"demote", straggler_measure::demoted},
  {"evict", straggler_measure::evicted},
}};

void read_measure(const std::string& text, run_options& options) {
  options.workers.stragglers.reset();
  for (const auto& [name, least] : measures)
    if (text == name)
      options.workers.stragglers = least;
  if (!options.workers.stragglers && text != "off")
    throw CLI::ValidationError{"--stragglers", quote(text)
                                                 + " is none of off, warn, rebalance, demote, "
                                                   "evict"};
}

/// Returns the strongest measure that keeps the guarantees of the mode.
straggler_measure least_possible(const run_options& options) {
  if (options.sync.traits().one_memory)
    return straggler_measure::warned;
  return options.mode() == run_mode::processes ? straggler_measure::evicted
                                               : straggler_measure::demoted;
}

} // namespace

void declare_stragglers(CLI::App& group, CLI::App& faults, run_options& options) {
  group
    .add_option(
      "--backup-workers", options.workers.backups,
      "bsp: extra workers, which compute the slowest workers' batches again; the first copy counts")
    ->check(CLI::Range(0u, 1024u).description("0..1024"))
    ->capture_default_str();
  group
    .add_option_function<std::string>(
      "--stragglers", [&](const std::string& text) { read_measure(text, options); },
      "The strongest measure against a worker much slower than others: off, warn, "
      "rebalance (less work), demote (its updates are not waited for), evict (for a while)")
    ->default_str("evict; with --threads demote, with hogwild warn");
  faults
    .add_option("--straggler-time-scale", options.workers.straggler_time_scale,
                "Divide the times of the rules for stragglers by this")
    ->check(CLI::Range(1.0, 20.0).description("1..20"))
    ->capture_default_str();
}

result<void> validate_stragglers(const run_options& options) {
  const auto invalid = [](std::string text) {
    return result<void>{errc::invalid_argument, std::move(text)};
  };
  if (std::isnan(options.workers.straggler_time_scale)) // CLI::Range accepts it.
    return invalid("--straggler-time-scale: nan is not a number from 1 to 20");
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
