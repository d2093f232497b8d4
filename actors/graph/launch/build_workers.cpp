#include "actors/graph/launch/build_workers.hpp"

#include "actors/graph/nodes/raw_stage.hpp"
#include "actors/protocol/worker/fault_stage.hpp"
#include "actors/roles/worker/compress_stage.hpp"
#include "actors/roles/worker/reduce_stage.hpp"
#include "actors/roles/worker/stage_actor.hpp"
#include "base/splitmix64.hpp"
#include "base/system/machine_name.hpp"
#include "base/user_code.hpp"

#include <memory>
#include <ranges>
#include <utility>

namespace troupe {

namespace {

using namespace std::chrono_literals;

/// Puts a stage in front of `values`.
void put(const worker_setup& setup, stage_options how, std::unique_ptr<stage_decider> stage,
         kv& values, built_workers& built) {
  values = spawn_stage(setup.system, std::move(how), std::move(stage), values);
  built.stages.push_back(caf::actor_cast<caf::actor>(values));
}

} // namespace

keeper_options keeper_of(const plan& what, const log_sink& log) {
  return {what.make_keeper, what.store_name, std::make_shared<program_notes>(log)};
}

built_workers build_workers(const worker_setup& setup, const std::vector<member_id>& group,
                            store_client store) {
  const auto& [system, what, job, log, connector_of, works, first, step_times] = setup;
  const auto& options = what.options;
  built_workers built;
  // In bsp the server adds up each slot by itself. Other stages need gradients on the host.
  bool keep_on_device = what.has<reduce>() && !goes_by_clocks(job);
  for (const auto& part : what.path)
    keep_on_device = keep_on_device && (part.get<reduce>() || part.get<compress>());
  const auto notes = std::make_shared<program_notes>(log);
  std::shared_ptr<reducer_tally> tally;
  for (const auto& part : what.path | std::views::reverse) {
    if (part.get<compress>() && what.compression)
      put(setup, {part.name(), notes}, make_compress_stage(job, *what.compression), store.values,
          built);
    if (const auto* const how = part.get<reduce>()) {
      tally = std::make_shared<reducer_tally>(job.workers + job.backup_workers);
      put(setup, {part.name(), notes, keep_on_device && !step_times},
          make_reduce_stage(job, {how->wait}, tally), store.values, built);
    }
    if (const auto* const how = part.get<faults>())
      put(setup, {part.name(), notes},
          make_fault_stage(
            {how->lost, how->repeated, how->delay},
            // Incarnations differ between simulations, which must not.
            splitmix64_of(job.seed
                          ^ (step_times ? group.front().index : group.front().incarnation.value))),
          store.values, built);
    if (const auto* const own = part.get<stage::of_program>()) {
      const user_call here{{"stage", part.name()}};
      stage_options how{.name = part.name(), .notes = notes, .is_program = true};
      if (own->actor) {
        store.values = spawn_raw_stage(system, std::move(how), own->actor->make, store.values,
                                       static_cast<bool>(step_times));
        built.stages.push_back(caf::actor_cast<caf::actor>(store.values));
        continue;
      }
      put(setup, std::move(how), own->make(), store.values, built);
    }
  }
  for (const auto& who : group) {
    const bool is_first = who == group.front();
    worker_options how;
    how.self = who;
    how.job = job;
    how.host = machine_name();
    how.step_planner.ahead_max = options.workers.ahead;
    how.delta_pulls = options.workers.delta_pulls;
    how.keep_on_device = keep_on_device;
    how.own_thread = !step_times;
    how.works = works;
    if (is_first && first)
      first(how);
    if (is_first)
      how.notes = notes;
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
      system, std::move(how), trainer_of(what, job, who.index, notes), store, connector_of(who))));
  }
  return built;
}

} // namespace troupe
