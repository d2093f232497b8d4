// The memory of one process, to which all workers write in place (hogwild).
#include "actors/graph/nodes/store_rules.hpp"
#include "actors/graph/plan.hpp"

#include <array>
#include <utility>

namespace troupe {

namespace of_shared_memory {

constexpr std::array refused{
  refused_options{"--checkpoint --checkpoint-every --checkpoint-keep --checkpoint-scrub --resume "
                  "--import",
                  "keeps no record of batches, so it has no checkpoints"},
  refused_options{"--servers --replicas --shards --verify-replicas",
                  "has one memory and no servers"},
};

static any_store make(std::vector<table_spec> tables, const servers&) {
  return shared_memory{std::move(tables)};
}

static void settle(const any_store&, plan& made) {
  for (auto& table : made.job.tables)
    table.sync = {consistency_mode::hogwild, 0};
}

/// It is one, for any number of servers.
static void fill(plan& made) { made.job.servers = 1; }

} // namespace of_shared_memory

const store_rules rules_of_shared_memory{
  .kind = store_kind::shared_memory,
  .make = of_shared_memory::make,
  .refused = of_shared_memory::refused,
  .is_one_memory = true,
  .why_no_servers = " is shared memory, without servers",
  .why_no_checkpoints = " is shared memory, without checkpoints",
  .why_no_actors =
    " is shared memory, without a coordinator that lists members: leave the actors and channels "
    "out, or use --sync asp",
  .text = [](const plan&) -> std::string { return "shared memory"; },
  .is_exactly_once = false,
  .lost_at_death = [](const plan&) -> std::string { return "everything"; },
  .why_no_replay = " keeps no order of pushes",
  .settle = of_shared_memory::settle,
  .fill = of_shared_memory::fill,
  .check = [](const plan&) -> result<void> { return {}; }};

} // namespace troupe
