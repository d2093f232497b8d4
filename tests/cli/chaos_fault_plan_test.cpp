#include "cli/chaos/fault_plan.hpp"

#include "doctest/doctest.h"

#include <map>
#include <set>
#include <vector>

namespace chaos_fault_plan_test {

using namespace troupe;
using namespace troupe::chaos;
using namespace std::chrono_literals;

namespace {

plan_options everything(std::uint64_t seed = 7) {
  return {.seed = seed,
          .kill = true,
          .stop = true,
          .partition = true,
          .full_disk = true,
          .flip = true,
          .servers = 3,
          .workers = 4,
          .actors = 2};
}

std::vector<planned_fault> first(std::size_t count, const plan_options& options) {
  fault_plan source{options};
  std::vector<planned_fault> all;
  while (all.size() < count)
    all.push_back(source.next().value());
  return all;
}

} // namespace

TEST_CASE("a_seed_is_a_plan") {
  CHECK(first(100, everything(7)) == first(100, everything(7)));
  CHECK(first(100, everything(7)) != first(100, everything(8)));
}

TEST_CASE("each_kind_comes_once_in_every_round") {
  const auto all = first(10 * fault_kinds, everything());
  for (std::size_t round = 0; round < 10; ++round) {
    std::set<fault_kind> seen;
    for (std::size_t i = 0; i < fault_kinds; ++i)
      seen.insert(all[round * fault_kinds + i].kind);
    CHECK(seen.size() == fault_kinds);
  }
}

TEST_CASE("only_what_is_asked_for_comes") {
  CHECK_FALSE(fault_plan{plan_options{}}.next());
  plan_options options{.stop = true, .long_faults = false, .servers = 2, .workers = 2};
  for (const auto& each : first(60, options)) {
    CHECK(each.kind >= fault_kind::stop_short);
    CHECK(each.kind <= fault_kind::stop_silence);
  }
  options.long_faults = true;
  CHECK(kinds_of(options).back() == fault_kind::stop_death);
}

TEST_CASE("stops_lie_between_the_limits_that_they_are_named_after") {
  const std::map<fault_kind, std::pair<std::chrono::milliseconds, std::chrono::milliseconds>> bands{
    {fault_kind::stop_short, {0ms, 800ms}},
    {fault_kind::stop_lease, {800ms, 1300ms}},
    {fault_kind::stop_silence, {1300ms, 5s}},
    {fault_kind::stop_death, {5s, 60s}}};
  std::set<fault_kind> seen;
  for (const auto& each : first(1000, everything()))
    if (const auto band = bands.find(each.kind); band != bands.end()) {
      seen.insert(each.kind);
      CHECK(each.lasts > band->second.first);
      CHECK(each.lasts < band->second.second);
    }
  CHECK(seen.size() == bands.size());
}

TEST_CASE("a_round_takes_what_its_faults_take_on_average") {
  for (const bool long_faults : {false, true}) {
    auto options = everything();
    options.long_faults = long_faults;
    const std::size_t kinds = kinds_of(options).size();
    const auto recoveries = 1000ms * kinds;
    std::chrono::milliseconds all{0};
    for (const auto& each : first(1000 * kinds, options))
      all += each.pause + each.lasts;
    CHECK(round_time(options) > 0.98 * (all / 1000 + recoveries));
    CHECK(round_time(options) < 1.02 * (all / 1000 + recoveries));
  }
  CHECK(round_time({}) == 0ms);
}

TEST_CASE("everyone_is_a_victim_and_nobody_else") {
  std::map<fault_kind, std::set<process_name>> victims;
  for (const auto& each : first(3000, everything()))
    victims[each.kind].insert(each.whom);
  using enum fault_kind;
  CHECK(victims[kill_server]
        == std::set<process_name>{{role::server, 0}, {role::server, 1}, {role::server, 2}});
  CHECK(victims[kill_worker].size() == 4);
  CHECK(victims[kill_actor] == std::set<process_name>{{role::actor, 0}, {role::actor, 1}});
  CHECK(victims[kill_coordinator] == std::set<process_name>{{role::coordinator, 0}});
  CHECK(victims[stop_silence].size() == 3 + 4 + 2 + 1);
  CHECK(victims[cut_in] == victims[kill_server]); // Cuts hit hosts; only servers have one.
}

} // namespace chaos_fault_plan_test
