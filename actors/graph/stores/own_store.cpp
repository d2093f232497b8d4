// One server process, whose values a keeper of the program has.
#include "actors/graph/nodes/store_rules.hpp"
#include "actors/graph/plan.hpp"

#include "fmt/format.h"

namespace troupe {

namespace of_own_store {

static void settle(const any_store& store, plan& made) {
  const auto scrub = made.options.servers.scrub_interval; // It has no such field.
  made.options.servers = store.as_servers();
  made.options.servers.tables.clear(); // They are in the job.
  made.options.servers.scrub_interval = scrub;
}

static void fill(plan& made) {
  made.job.partitions = 1;
  made.job.servers = made.options.servers.count;
}

static result<void> check(const plan& what) {
  const auto& options = what.options;
  const auto wrong = [&](const char* option, const char* why) {
    return result<void>{errc::invalid_argument,
                        fmt::format("{}: {} is an own store, {}: leave the option out", option,
                                    what.store_name, why)};
  };
  if (!what.make_keeper)
    return {errc::invalid_argument, what.store_name + " makes no keeper: set own_store::make"};
  for (const auto& table : what.job.tables)
    if (table.optimizer != optimizer_spec{})
      return {errc::invalid_argument,
              fmt::format("table '{}' has an optimizer, and the keeper of {} applies its pushes: "
                          "leave the optimizer out",
                          table.name, what.store_name)};
  if (what.has<reduce>() && !what.keeper_takes_sums)
    return {
      errc::invalid_argument,
      fmt::format("a reducer adds up gradients, and the keeper of {} takes no sums: leave the "
                  "reducer (--workers-per-process) out, or set own_store::takes_sums",
                  what.store_name)};
  if (options.given.contains("--partitions") && options.partitions != 1)
    return wrong("--partitions", "which is one partition");
  if (options.workers.delta_pulls)
    return wrong("--delta-pulls", "whose keeper gives out whole values");
  if (options.record_directory)
    return wrong("--record", "and a replay has no keeper");
  if (options.replay_directory)
    return wrong("--replay", "and a replay has no keeper");
  if (options.import_file)
    return wrong("--import", "whose keeper begins with its own values");
  return rules_of_servers.check(what);
}

} // namespace of_own_store

const store_rules rules_of_own_store{
  .kind = store_kind::own_store,
  .has_servers = true,
  .why_no_servers = " is an own store, which is one server without replicas",
  .why_no_steps = " is an own store, whose keeper takes the steps, without an optimizer",
  .why_no_sync = " is an own store, whose keeper takes each push by itself (asp)",
  .why_not_frozen = " leaves steps to its keeper: leave it unfrozen",
  .why_no_values = " begins with those of its keeper: leave the file out",
  .text = [](const plan&) -> std::string { return "own store"; },
  .lost_at_death = [](const plan& what) { return rules_of_servers.lost_at_death(what); },
  .why_no_replay = " has a keeper",
  .settle = of_own_store::settle,
  .fill = of_own_store::fill,
  .check = of_own_store::check};

} // namespace troupe
