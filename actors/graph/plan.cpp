#include "actors/graph/plan.hpp"

#include "actors/graph/field_checks.hpp"
#include "actors/graph/options/compression.hpp"
#include "base/quote.hpp"
#include "storage/job_difference.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

using namespace std::chrono_literals;

/// Gives frozen tables an optimiser without a state, and the sync of the tables that learn.
void settle_frozen(std::vector<table_spec>& tables) {
  const auto learns = std::ranges::find(tables, false, &table_spec::frozen);
  for (auto& table : tables) {
    if (!table.frozen || learns == tables.end())
      continue;
    table.sync = learns->sync;
    if (table.optimizer.kind != optimizer_kind::user) // check_frozen() refuses it.
      table.optimizer = {};
  }
}

/// Returns the consistency that keeps workers closest together.
consistency strictest_of(const std::vector<table_spec>& tables) {
  const auto rank = [](const table_spec& x) {
    const auto& mode = x.sync.traits();
    return mode.clock_updates ? 0 : mode.bounded_lead ? 1 : 2;
  };
  return std::ranges::min(tables, {}, rank).sync;
}

/// Writes the nodes of the graph over those of the command line.
void take_nodes(const graph& described, plan& made) {
  const auto& store = described.stores().front();
  const auto& source = described.worker_nodes().front();
  auto& options = made.options;
  made.store_name = store.name;
  made.job.tables = store.what.tables();
  made.store = options.chosen_store = &rules_of(store.what.kind());
  made.rules().settle(store.what, made);
  settle_frozen(made.job.tables);
  options.sync = strictest_of(made.job.tables);
  made.make_keeper = store.what.keeper();
  made.keeper_takes_sums = store.what.keeper_takes_sums();
  made.workers_name = source.name;
  options.workers = source.what;
  made.path = source.path.stages;
  for (const auto& each : made.path) {
    if (const auto* const kind = each.get<reduce>())
      options.reducer = *kind;
    if (const auto* const kind = each.get<compress>())
      options.codec = *kind;
  }
  if (!made.has<compress>())
    options.codec = {};
  for (const auto& each : described.evaluators())
    made.evaluators.push_back({each.name, each.what.make});
  take_channels(described, made);
}

/// Finds the actor that an option names by its node; nullopt: no node of actors has the name.
result<std::optional<std::uint32_t>> actor_named(const named_process& named, const plan& made) {
  const auto node = std::ranges::find(made.actor_nodes, named.node, &planned_actors::name);
  if (node == made.actor_nodes.end())
    return std::optional<std::uint32_t>{};
  if (named.option == "--slow")
    return {errc::invalid_argument,
            fmt::format("--slow: {} has actors, which take no steps: name {}", named.node,
                        made.workers_name)};
  if (named.index >= node->what.count)
    return {errc::invalid_argument,
            fmt::format("{}: {} has no actor {}, only 0 to {}", named.option, named.node,
                        named.index, node->what.count - 1)};
  return std::optional{node->first + named.index};
}

/// Returns the nodes that have processes which this option may name.
std::string nodes_for(const std::string& option, const plan& made) {
  auto names = made.workers_name;
  if (option == "--slow")
    return names;
  if (made.rules().has_servers)
    names += " or " + made.store_name;
  for (const auto& each : made.actor_nodes)
    if (!made.pipeline
        || each.first < made.pipeline->first) // Later parts go by the name of their line.
      names += " or " + each.name;
  return names;
}

/// Finds the process that an option names by the pipeline.
result<void> name_process_of_pipeline(named_process named, plan& made) {
  const auto& planned = *made.pipeline;
  if (named.index >= planned.lines * planned.count())
    return {errc::invalid_argument,
            fmt::format("{}: {} has no process {}, only 0 to {}: process I is line I / {}, part I "
                        "% {}",
                        named.option, named.node, named.index, planned.lines * planned.count() - 1,
                        planned.count(), planned.count())};
  const auto who = planned.member_of(named.index);
  if (who.role == role::actor && named.option == "--slow")
    return {errc::invalid_argument,
            fmt::format("--slow: {}:{} is part {} of its line: name the first part, {}:{}",
                        named.node, named.index, named.index % planned.count(), named.node,
                        named.index - named.index % planned.count())};
  named.index = who.index;
  add_process(named, who.role, made.options);
  return {};
}

/// Finds the processes that options name by a node.
result<void> name_processes(plan& made) {
  for (auto named : std::exchange(made.options.by_node, {})) {
    if (made.pipeline && named.node == made.workers_name) {
      if (auto fine = name_process_of_pipeline(std::move(named), made); !fine)
        return fine;
      continue;
    }
    const auto actor = actor_named(named, made);
    if (!actor)
      return actor.error();
    const bool is_worker = named.node == made.workers_name;
    const bool is_server = named.node == made.store_name && made.rules().has_servers;
    if (*actor) {
      named.index = **actor;
      add_process(named, role::actor, made.options);
    } else if (is_worker || (is_server && named.option != "--slow")) {
      add_process(named, is_worker ? role::worker : role::server, made.options);
    } else {
      return {errc::invalid_argument,
              fmt::format("{}: {} has no processes of the name {}: name {}", named.option,
                          made.program, quote(named.node), nodes_for(named.option, made))};
    }
  }
  return {};
}

void fill_job(const graph& described, plan& made) {
  const auto& options = made.options;
  auto& job = made.job;
  job.name =
    described.dataset_id().empty() ? made.program : made.program + " on " + described.dataset_id();
  job.seed = options.seed;
  job.partitions = options.partitions;
  job.replicas = options.servers.replicas;
  job.shards = options.servers.shards;
  job.durability = options.servers.durability;
  job.workers = options.workers.count;
  job.backup_workers = options.workers.backups;
  job.actors = options.actors;
  job.samples = options.workers.samples;
  job.batch_samples = options.batch_samples;
  job.epochs = options.epochs;
  job.own_options = options.own;
  job.own_store = static_cast<bool>(made.make_keeper); // So that the server's process makes it.
  made.rules().fill(made);
}

/// Makes the neighbour graph of a gossip store.
result<void> take_peers(const graph& described, plan& made) {
  if (!made.job.gossip)
    return {};
  const auto& [with, how] = described.stores().front().what.as_gossip();
  auto graph = with.of(made.job.workers);
  if (!graph)
    return graph.error();
  made.peers = planned_gossip{with, how, *std::move(graph)};
  made.notices.push_back({.text = made.store_name + ": " + made.rules().text(made)});
  if (!with.path().empty())
    made.files.push_back(with.path());
  return {};
}

/// Takes the files with first values out of the job, which has checksums in their place.
void take_files(plan& made) {
  for (auto& table : made.job.tables) {
    table.values_checksum = 0;
    made.values.push_back(std::exchange(table.values, std::nullopt));
    if (made.values.back())
      made.files.emplace_back(made.values.back()->path);
  }
}

/// Checks frozen tables.
result<void> check_frozen(const plan& what) {
  for (const auto& table : what.job.tables) {
    if (!table.frozen)
      continue;
    const auto wrong = [&](const std::string& text) {
      return result<void>{errc::invalid_argument,
                          "table '" + table.name + "' is frozen, and " + text};
    };
    if (table.is_sparse())
      return wrong("it is sparse: make it dense, or leave it unfrozen");
    if (const auto why = what.rules().why_not_frozen; !why.empty())
      return wrong(what.store_name + std::string{why});
    if (table.optimizer.kind == optimizer_kind::user)
      return wrong("its function '" + table.optimizer.function
                   + "' would never be called: leave the function out");
    if (what.options.codec.pushes.contains(table.name))
      return wrong("has no gradient that --compress " + table.name
                   + "=... could pack: leave it out");
  }
  return {};
}

/// Checks tables that begin with the values of a file.
result<void> check_values(const plan& what) {
  for (std::size_t i = 0; i < what.values.size(); ++i) {
    if (!what.values[i])
      continue;
    const auto wrong = [&](std::string_view text) {
      return result<void>{errc::invalid_argument,
                          fmt::format("table '{}' begins with the values of {}, and {}",
                                      what.job.tables[i].name, what.values[i]->path, text)};
    };
    if (what.job.tables[i].is_sparse())
      return wrong("it is sparse: leave the file out, or make the table dense");
    if (const auto why = what.rules().why_no_values; !why.empty())
      return wrong(what.store_name + std::string{why});
    if (what.options.import_file)
      return wrong("--import has values of all tables: leave one of them out");
  }
  return {};
}

/// Checks fields of nodes against the store.
result<void> check_nodes(const plan& made) {
  if (made.options.servers.on_death.then == outcome::leave_out)
    return {errc::invalid_argument,
            made.store_name
              + ": a job cannot go on without a part of its tables, so on_death.then "
                "must be fail_job"};
  if (made.options.record_directory && mixes_clocks(made.job))
    return {errc::invalid_argument,
            "--record knows jobs of which all tables are bsp, or none: leave it out"};
  return made.rules().check(made);
}

/// Checks the local steps of the workers against the tables and the way to run.
result<void> check_local_steps(const plan& what) {
  const auto* const local = what.options.workers.make.local();
  const auto wrong = [&](std::string text) {
    return result<void>{errc::invalid_argument, what.workers_name + text};
  };
  if (!local)
    return {};
  for (const auto& table : what.job.tables)
    if (table.is_sparse())
      return wrong(fmt::format(" takes local steps, and table '{}' is sparse: make it dense, or "
                               "leave the local steps out",
                               table.name));
  constexpr std::uint32_t steps_max = 1'000'000;
  if (local->steps < 1 || local->steps > steps_max)
    return wrong(fmt::format(": local_step_options::steps is {}, which is not from 1 to {}",
                             local->steps, steps_max));
  if (local->steps > what.job.batch_samples)
    return wrong(fmt::format(" takes {} local steps, and a batch has {} samples: raise --batch",
                             local->steps, what.job.batch_samples));
  if (local->optimizer.kind == optimizer_kind::user)
    return wrong(": local steps run in workers, which have no server functions: give "
                 "local_step_options::optimizer a built-in kind");
  if (const auto* const defect = defect_of(local->optimizer))
    return wrong(fmt::format(": the optimizer of its local steps: {}", defect));
  if (local->optimizer.full_rate_staleness > 0)
    return wrong(": local steps have no staleness, so full_rate_staleness must be 0");
  if (local->keep && (what.options.record_directory || what.options.replay_directory))
    return {errc::invalid_argument,
            fmt::format("--{}: {} keeps the state of its local steps, which a replay cannot have: "
                        "set keep to false, or leave the option out",
                        what.options.record_directory ? "record" : "replay", what.workers_name)};
  return {};
}

/// Checks the stages against the store and the way to run.
result<void> check_path(const plan& what) {
  const auto wrong = [](std::string text) {
    return result<void>{errc::invalid_argument, std::move(text)};
  };
  for (const auto& each : what.path) {
    const auto* const own = each.get<stage::of_program>();
    const bool of_trainer = each.get<stage::of_trainer>() != nullptr;
    if (const auto* const wanted = each.get<faults>())
      if (!(wanted->lost >= 0 && wanted->lost < 1 && wanted->repeated >= 0 && wanted->repeated < 1
            && wanted->delay >= 0ms && wanted->delay <= 5s))
        return wrong("faults: shares are from 0 to below 1, and the delay is at most 5 s");
    if (!of_trainer && !what.rules().has_servers)
      return wrong(fmt::format("{} changes requests, and {} gets none, as it is no store of "
                               "servers: leave {} out",
                               each.name(), what.store_name, each.name()));
    if (own && own->actor && (what.options.record_directory || what.options.replay_directory))
      return wrong(fmt::format("--{}: {} is an actor, which a replay does not have: use an "
                               "own_stage, or leave the option out",
                               what.options.record_directory ? "record" : "replay", each.name()));
    if (own && !own->promises.pure
        && (what.options.record_directory || what.options.replay_directory))
      return wrong(fmt::format("--{}: {} may keep a state, which a replay cannot have: declare it "
                               "pure, or leave the option out",
                               what.options.record_directory ? "record" : "replay", each.name()));
  }
  return {};
}

/// Checks options that do not fit server functions.
result<void> check_steps(const plan& what) {
  for (const auto& table : what.job.tables)
    if (table.optimizer.kind == optimizer_kind::user && what.options.servers.apply_batch > 1)
      return {errc::invalid_argument,
              fmt::format("table '{}' has a function, which gets each push by itself: leave out "
                          "--apply-batch, and servers::apply_batch",
                          table.name)};
  return {};
}

} // namespace

result<plan> lower(const std::string& program, const graph& described, const run_options& options,
                   const server_functions& functions) {
  if (auto wired = described.validate(); !wired)
    return wired.error();
  plan made;
  made.program = program;
  made.options = options;
  made.functions = functions;
  take_nodes(described, made);
  if (auto fits = take_pipeline(described, made); !fits)
    return fits.error();
  if (auto named = name_processes(made); !named)
    return named.error();
  fill_job(described, made);
  for (const auto& line : described.remarks())
    made.notices.push_back({.text = line});
  made.files = described.files();
  if (described.dataset_id().empty())
    made.data_files = made.files;
  take_files(made);
  if (!options.replay_directory) // A replay says which options have no effect.
    if (auto used = check_effects(options, made); !used)
      return used.error();
  if (auto fit = check_ranges(made); !fit)
    return fit.error();
  if (auto fit = check_nodes(made); !fit)
    return fit.error();
  if (auto fit = take_peers(described, made); !fit)
    return fit.error();
  if (auto fit = validate(made.options); !fit)
    return fit.error();
  if (auto fits = check_path(made); !fits)
    return fits.error();
  if (auto fits = check_pipeline(made); !fits)
    return fits.error();
  if (auto fits = check_channels(made); !fits)
    return fits.error();
  if (auto resolved = resolve_functions(made.job.tables, functions); !resolved)
    return resolved.error();
  if (auto fits = check_steps(made); !fits)
    return fits.error();
  if (auto fits = check_frozen(made); !fits)
    return fits.error();
  if (auto fits = check_values(made); !fits)
    return fits.error();
  if (auto valid = validate(made.job); !valid)
    return valid.error();
  if (auto fits = check_local_steps(made); !fits)
    return fits.error();
  auto compression = compression_of(made.options, made.job);
  if (!compression)
    return compression.error();
  made.compression = *std::move(compression);
  return made;
}

node_roles node_roles_of(const plan& what) {
  node_roles roles{{what.workers_name, "worker"},
                   {what.store_name, what.rules().has_servers ? "server" : "worker"}};
  for (const auto& each : what.actor_nodes)
    roles.push_back({each.name, std::string{traits_of(role::actor).process}, each.first});
  for (const auto& each : what.evaluators)
    roles.push_back({each.name, "launcher"});
  return roles;
}

std::string graph_difference(const job_spec& theirs, const job_spec& mine) {
  if (fingerprint(mine) != fingerprint(theirs))
    return "this process's graph belongs to another " + storage::job_difference(theirs, mine);
  if (mine.actors != theirs.actors)
    return fmt::format("this process's graph has {} actors, and the job has {}: start all hosts "
                       "with the same options",
                       mine.actors, theirs.actors);
  return {};
}

std::string overruled(const run_options& options, const job_spec& mine, const job_spec& theirs) {
  std::vector<std::string> differing;
  const auto compare = [&](const char* name, const auto& here, const auto& there) {
    if (options.given.contains(name) && here != there)
      differing.push_back(fmt::format("{} {}", name, there));
  };
  compare("--epochs", mine.epochs, theirs.epochs);
  const auto here = std::ranges::find(mine.tables, false, &table_spec::frozen);
  const auto there = std::ranges::find(theirs.tables, false, &table_spec::frozen);
  if (here != mine.tables.end() && there != theirs.tables.end()) {
    compare("--sync", to_string(here->sync), to_string(there->sync));
    compare("--lr", here->optimizer.learning_rate, there->optimizer.learning_rate);
  }
  if (differing.empty())
    return "";
  return fmt::format("using the main host's {}; this host's value is ignored",
                     fmt::join(differing, ", "));
}

} // namespace troupe
