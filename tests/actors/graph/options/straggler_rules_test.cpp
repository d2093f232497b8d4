#include "actors/graph/options/straggler_rules.hpp"

#include "actors/graph/options/fields.hpp"

#include "CLI/CLI.hpp"
#include "doctest/doctest.h"

#include <algorithm>
#include <string>
#include <vector>

namespace straggler_rules_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

run_options parsed(std::vector<std::string> words) {
  run_options options;
  CLI::App app;
  declare(app, options);
  std::reverse(words.begin(), words.end());
  app.parse(words);
  return options;
}

} // namespace

TEST_CASE("stragglers_meet_as_much_force_as_the_mode_bears_and_the_user_wants") {
  const auto least = [](const std::vector<std::string>& words) {
    const auto options = parsed(words);
    CHECK(validate(options));
    return straggler_rules(options).value().strongest;
  };
  CHECK(least({}) == straggler_measure::evicted);
  CHECK(least({"--stragglers", "rebalance"}) == straggler_measure::rebalanced);
  CHECK(least({"--threads"}) == straggler_measure::demoted);
  CHECK(least({"--threads", "--stragglers", "warn"}) == straggler_measure::warned);
  CHECK(least({"--sync", "hogwild"}) == straggler_measure::warned);
  CHECK_FALSE(straggler_rules(parsed({"--stragglers", "off"})));
  CHECK_FALSE(validate(parsed({"--threads", "--stragglers", "evict"})));
  CHECK_FALSE(validate(parsed({"--sync", "hogwild", "--stragglers", "demote"})));
}

TEST_CASE("all_times_of_the_rules_are_hurried_but_what_nobody_would_gain_by") {
  const auto rules = *straggler_rules(parsed({"--straggler-time-scale", "4"}));
  const straggler_options usual;
  CHECK(rules.round == 250ms);
  CHECK(rules.probation == 7500ms);
  CHECK(rules.window_time == 1250ms);
  CHECK(rules.slow_excess == usual.slow_excess);
  CHECK(rules.slow_ratio == usual.slow_ratio);
  CHECK(validate(rules));
  CHECK(validate(hurried(usual, 20.0)));
}

TEST_CASE("backup_workers_are_for_bsp_and_no_more_than_workers") {
  CHECK(validate(parsed({"--sync", "bsp", "--backup-workers", "4"})));
  CHECK_FALSE(validate(parsed({"--backup-workers", "1"})));
  CHECK_FALSE(validate(parsed({"--sync", "ssp:2", "--backup-workers", "1"})));
  CHECK_FALSE(validate(parsed({"--sync", "bsp", "--backup-workers", "5"})));
  CHECK(validate(parsed({"--sync", "bsp", "--backup-workers", "1", "--slow", "4:5"})));
  CHECK_FALSE(validate(parsed({"--sync", "bsp", "--backup-workers", "1", "--slow", "5:5"})));
}

} // namespace straggler_rules_test
