// The values of each worker process; the workers add up their gradients (bsp).
#include "actors/graph/nodes/store_rules.hpp"
#include "actors/graph/plan.hpp"

#include "fmt/format.h"

#include <array>
#include <utility>

namespace troupe {

namespace of_all_reduce {

constexpr consistency in_step{consistency_mode::bsp, 0};

constexpr std::array refused{
  refused_options{
    "--servers --replicas --shards --durability --apply-batch --delta-pulls --verify-replicas "
    "--reads --push-memory --no-key-cache --record --replay --compress-pulls",
    "has no servers"},
  refused_options{"--staleness-lr --backup-workers --stragglers --straggler-time-scale --slow",
                  "has all workers wait for each other in every step"},
  refused_options{"--coordinator-store --standbys --checkpoint-scrub", "has no coordinator"},
  refused_options{"--listen --join --here --ports --tls", "runs on one host so far"},
  refused_options{"--compress", "adds up whole gradients"},
  refused_options{"--workers-per-process --reduce-wait --threads --simulate",
                  "has a process for each worker"},
};

static any_store make(std::vector<table_spec> tables, const servers& fields) {
  return all_reduce{std::move(tables), fields.checkpoints};
}

static void settle(const any_store& store, plan& made) {
  for (auto& table : made.job.tables)
    table.sync = of_all_reduce::in_step;
  made.options.servers.checkpoints = store.checkpoints();
}

/// Each partition counts as one server, which allows the largest tables.
static void fill(plan& made) { made.job.servers = made.job.partitions; }

static result<void> check(const plan& what) {
  const auto& source = what.options.workers;
  if (source.on_death.then == outcome::leave_out)
    return {errc::invalid_argument,
            what.workers_name
              + ": an all-reduce waits for all workers, so on_death.then must be fail_job"};
  if (source.per_process > 1 || source.backups > 0 || source.delta_pulls)
    return {errc::invalid_argument,
            what.workers_name
              + ": an all-reduce has a process for each worker, which pulls nothing: leave "
                "per_process, backups and delta_pulls out"};
  for (const auto& table : what.job.tables)
    if (table.is_sparse())
      return {errc::invalid_argument,
              fmt::format("--sync allreduce sends whole gradients, and table '{}' is sparse: use "
                          "--sync bsp with servers",
                          table.name)};
  return {};
}

} // namespace of_all_reduce

const store_rules rules_of_all_reduce{
  .kind = store_kind::all_reduce,
  .sync_word = "allreduce",
  .sync = of_all_reduce::in_step,
  .help = "as bsp, but without servers: workers add up their gradients among themselves",
  .make = of_all_reduce::make,
  .refused = of_all_reduce::refused,
  .has_ranks = true,
  .why_no_servers = " is an all-reduce, without servers",
  .why_no_actors =
    " is an all-reduce, whose workers reach each other alone: leave the actors and channels out, "
    "or use --sync bsp",
  .text = [](const plan&) -> std::string { return "all-reduce"; },
  .lost_at_death = [](const plan&) -> std::string { return "nothing while one worker lives"; },
  .why_no_replay = " keeps no order of pushes",
  .settle = of_all_reduce::settle,
  .fill = of_all_reduce::fill,
  .check = of_all_reduce::check};

} // namespace troupe
