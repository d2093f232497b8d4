#include "actors/graph/launch/build_workers.hpp"

#include "actors/roles/worker/compress_stage.hpp"
#include "actors/roles/worker/reduce_stage.hpp"
#include "actors/roles/worker/stage_actor.hpp"
#include "base/system/machine_name.hpp"

#include <memory>
#include <utility>

namespace troupe {

namespace {

using namespace std::chrono_literals;

/// Puts a stage in front of `values`.
void put(const worker_setup& setup, stage_options how, std::unique_ptr<stage_decider> stage,
         kv& values, built_workers& built) {
  how.log = setup.log;
  values = spawn_stage(setup.system, std::move(how), std::move(stage), values);
  built.stages.push_back(caf::actor_cast<caf::actor>(values));
}

} // namespace

built_workers build_workers(const worker_setup& setup, const std::vector<member_id>& group,
                            store_client store) {
  const auto& [system, job, described, options, compression, log, connector_of, first, step_times] =
    setup;
  built_workers built;
  if (compression)
    put(setup, {.name = "codec"}, make_compress_stage(job, *compression), store.values, built);
  const bool reduces = options.workers_per_process > 1;
  // In bsp the server adds up each slot by itself.
  const bool keep_on_device = reduces && !any_bsp(job);
  std::shared_ptr<reducer_tally> tally;
  if (reduces) {
    tally = std::make_shared<reducer_tally>(job.workers + job.backup_workers);
    put(setup, {.name = "reducer", .own_thread = keep_on_device && !step_times},
        make_reduce_stage(job, {options.reduce_wait}, tally), store.values, built);
  }
  for (const auto& who : group) {
    const bool is_first = who == group.front();
    worker_options how;
    how.self = who;
    how.job = job;
    how.host = machine_name();
    how.step_planner.ahead_max = options.pull_ahead;
    how.delta_pulls = options.delta_pulls;
    how.keep_on_device = keep_on_device;
    how.own_thread = !step_times;
    if (is_first && first)
      first(how);
    if (tally)
      how.reduced = [tally, index = who.index, is_first](worker_counters& counters) {
        count(*tally, index, is_first, counters);
      };
    const auto slow = options.slow_workers.find(who.index);
    const auto longer = slow == options.slow_workers.end() ? 0ms : slow->second;
    if (step_times)
      how.slowness = step_times(longer);
    else if (longer > 0ms)
      how.slowness = [longer] { return longer; };
    built.workers.push_back(caf::actor_cast<caf::actor>(spawn_worker(
      system, std::move(how), described.make_trainer(who.index), store, connector_of(who))));
  }
  return built;
}

} // namespace troupe
