#include "actors/graph/options/options.hpp"

#include <utility>

namespace troupe {

const store_rules& run_options::rules() const {
  const bool by_mode = chosen_store == &rules_of_servers && sync.traits().one_memory;
  return by_mode ? rules_of_shared_memory : *chosen_store;
}

run_mode run_options::mode() const {
  return asked_mode.value_or(sync.traits().one_memory ? run_mode::threads : run_mode::processes);
}

bool run_options::needs_run_directory() const {
  return mode() == run_mode::processes
         || (mode() == run_mode::threads && import_file && !checkpoint_directory);
}

/// Gives the optimiser of the command line to the tables for which the program sets none.
static void set_optimizers(std::vector<table_spec>& tables, const optimizer_spec& what) {
  for (auto& table : tables)
    if (table.optimizer == optimizer_spec{})
      table.optimizer = what;
}

any_store run_options::store(std::vector<table_spec> tables) const {
  set_optimizers(tables, optimizer);
  for (auto& table : tables)
    table.sync = sync;
  return rules().make(std::move(tables), servers);
}

gossip run_options::gossip_of(std::vector<table_spec> tables, neighbours with, mixing how) const {
  set_optimizers(tables, optimizer);
  return {.tables = std::move(tables),
          .with = std::move(with),
          .how = how,
          .checkpoints = servers.checkpoints};
}

workers run_options::workers_of(std::uint64_t samples, trainer_maker make) const {
  auto made = workers;
  made.samples = samples;
  made.make = std::move(make);
  return made;
}

pipeline run_options::pipeline_of(std::uint64_t samples, std::vector<part_spec> parts) const {
  return {.samples = samples,
          .parts = std::move(parts),
          .lines = workers.count,
          .micro = micro,
          .push_memory_mib = workers.push_memory_mib,
          .stragglers = workers.stragglers,
          .straggler_time_scale = workers.straggler_time_scale,
          .on_death = workers.on_death};
}

stage_list run_options::stages() const {
  stage_list made;
  if (workers.per_process > 1)
    made.emplace_back(reducer);
  if (!codec.pushes.empty() || codec.pulls != encoding::f32)
    made.emplace_back(codec);
  return made;
}

} // namespace troupe
