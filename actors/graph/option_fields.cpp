#include "actors/graph/option_fields.hpp"

#include "actors/graph/plan.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace troupe {

namespace {

template <auto Holder, auto Field>
bool is_same(const run_options& asked, const plan& made) {
  return asked.*Holder.*Field == made.options.*Holder.*Field;
}
template <auto Field>
bool in_servers(const run_options& asked, const plan& made) {
  return is_same<&run_options::servers, Field>(asked, made);
}
template <auto Field>
bool in_workers(const run_options& asked, const plan& made) {
  return is_same<&run_options::workers, Field>(asked, made);
}
template <auto Field>
bool in_a_table(const run_options& asked, const plan& made) {
  return std::ranges::any_of(made.job.tables, [&](const table_spec& table) {
    return !table.frozen && table.optimizer.*Field == asked.optimizer.*Field;
  });
}
bool is_rate_of_stale_steps(const run_options& asked, const plan& made) {
  return std::ranges::any_of(made.job.tables, [&](const table_spec& table) {
    return !table.frozen && table.sync.has_stale_steps()
           && table.optimizer.full_rate_staleness == asked.optimizer.full_rate_staleness;
  });
}
/// A server function gets no such field.
template <auto Field>
bool in_a_kernel(const run_options& asked, const plan& made) {
  return std::ranges::any_of(made.job.tables, [&](const table_spec& table) {
    return !table.frozen && table.optimizer.kind != optimizer_kind::user
           && table.optimizer.*Field == asked.optimizer.*Field;
  });
}
bool is_sync_of_a_table(const run_options& asked, const plan& made) {
  return asked.allreduce == (made.store == store_kind::all_reduce)
         && std::ranges::any_of(made.job.tables,
                                [&](const table_spec& table) { return table.sync == asked.sync; });
}

bool is_same_period(const run_options& asked, const plan& made) {
  const auto& mine = asked.servers.checkpoints;
  const auto& held = made.options.servers.checkpoints;
  return mine.interval == held.interval && mine.clocks == held.clocks;
}
bool is_same_keep(const run_options& asked, const plan& made) {
  return asked.servers.checkpoints.keep == made.options.servers.checkpoints.keep;
}

constexpr std::array known_fields{
  option_field{"--servers", "servers", "count", in_servers<&servers::count>},
  option_field{"--replicas", "servers", "replicas", in_servers<&servers::replicas>},
  option_field{"--shards", "servers", "shards", in_servers<&servers::shards>},
  option_field{"--durability", "servers", "durability", in_servers<&servers::durability>},
  option_field{"--apply-batch", "servers", "apply_batch", in_servers<&servers::apply_batch>},
  option_field{"--verify-replicas", "servers", "verify_replicas",
               in_servers<&servers::verify_replicas>},
  option_field{"--reads", "servers", "reads", in_servers<&servers::reads>},
  option_field{"--checkpoint-every", "checkpoints", "interval", is_same_period},
  option_field{"--checkpoint-keep", "checkpoints", "keep", is_same_keep},
  option_field{"--checkpoint-scrub", "checkpoints", "scrub_interval",
               in_servers<&servers::scrub_interval>},
  option_field{"--sync", "tables", "sync", is_sync_of_a_table},
  option_field{"--optimizer", "tables", "optimizer.kind", in_a_table<&optimizer_spec::kind>},
  option_field{"--lr", "tables", "optimizer.learning_rate",
               in_a_table<&optimizer_spec::learning_rate>},
  option_field{"--momentum", "tables", "optimizer.momentum",
               in_a_kernel<&optimizer_spec::momentum>},
  option_field{"--beta2", "tables", "optimizer.beta2", in_a_kernel<&optimizer_spec::beta2>},
  option_field{"--epsilon", "tables", "optimizer.epsilon", in_a_kernel<&optimizer_spec::epsilon>},
  option_field{"--weight-decay", "tables", "optimizer.weight_decay",
               in_a_kernel<&optimizer_spec::weight_decay>},
  option_field{"--l1", "tables", "optimizer.l1", in_a_kernel<&optimizer_spec::l1>},
  option_field{"--ftrl-beta", "tables", "optimizer.beta", in_a_kernel<&optimizer_spec::beta>},
  option_field{"--clip-norm", "tables", "optimizer.clip_norm",
               in_a_table<&optimizer_spec::clip_norm>},
  option_field{"--clip-value", "tables", "optimizer.clip_value",
               in_a_kernel<&optimizer_spec::clip_value>},
  option_field{"--staleness-lr", "tables", "optimizer.full_rate_staleness", is_rate_of_stale_steps},
  option_field{"--workers", "workers", "count", in_workers<&workers::count>},
  option_field{"--workers-per-process", "workers", "per_process",
               in_workers<&workers::per_process>},
  option_field{"--pull-ahead", "workers", "ahead", in_workers<&workers::ahead>},
  option_field{"--backup-workers", "workers", "backups", in_workers<&workers::backups>},
  option_field{"--delta-pulls", "workers", "delta_pulls", in_workers<&workers::delta_pulls>},
  option_field{"--push-memory", "workers", "push_memory_mib",
               in_workers<&workers::push_memory_mib>},
  option_field{"--stragglers", "workers", "stragglers", in_workers<&workers::stragglers>},
  option_field{"--straggler-time-scale", "workers", "straggler_time_scale",
               in_workers<&workers::straggler_time_scale>},
  option_field{"--reduce-wait", "reduce", "wait", is_same<&run_options::reducer, &reduce::wait>},
  option_field{"--compress", "compress", "pushes", is_same<&run_options::codec, &compress::pushes>},
  option_field{"--compress-pulls", "compress", "pulls",
               is_same<&run_options::codec, &compress::pulls>},
};

/// Returns the reason why the graph has no holder of this field; nullopt if it has one.
std::optional<std::string> why_missing(const option_field& field, const run_options& asked,
                                       const plan& made) {
  const auto holder = field.holder;
  if (holder == "tables" && made.store == store_kind::own_store
      && (field.field != "sync" || !field.held(asked, made)))
    return made.store_name + " is an own store, whose keeper takes each push by itself (asp)";
  if (holder == "servers" && made.store == store_kind::shared_memory)
    return made.store_name + " is shared memory, without servers";
  if (holder == "servers" && made.store == store_kind::all_reduce)
    return made.store_name + " is an all-reduce, without servers";
  if (holder == "servers" && made.store == store_kind::own_store)
    return made.store_name + " is an own store, which is one server without replicas";
  if (field.field == "optimizer.full_rate_staleness"
      && std::ranges::none_of(made.job.tables, &consistency::has_stale_steps, &table_spec::sync))
    return fmt::format("the tables of {} are {}, whose steps have no staleness", made.store_name,
                       to_string(made.options.sync));
  if (holder == "checkpoints" && made.store == store_kind::shared_memory)
    return made.store_name + " is shared memory, without checkpoints";
  if (holder == "reduce" && !made.has<reduce>())
    return "no reducer adds up the gradients of " + made.workers_name
           + " (--workers-per-process 2 adds one, if the program takes the stages of the command "
             "line)";
  if (holder == "compress" && !made.has<compress>())
    return "the program puts no codec behind " + made.workers_name;
  return std::nullopt;
}

std::string who_holds(std::string_view holder, const plan& made) {
  if (holder == "servers")
    return "the servers of " + made.store_name;
  if (holder == "checkpoints")
    return "the checkpoints of " + made.store_name;
  if (holder == "tables")
    return "it for the tables of " + made.store_name;
  if (holder == "workers")
    return "the workers of " + made.workers_name;
  return holder == "reduce" ? "the reducer" : "the codec";
}

} // namespace

std::span<const option_field> option_fields() { return known_fields; }

result<void> check_effects(const run_options& asked, const plan& made) {
  for (const auto& each : known_fields) {
    if (!asked.given.contains(std::string{each.option}))
      continue;
    if (const auto why = why_missing(each, asked, made))
      return {errc::invalid_argument, fmt::format("{} has no effect: {}", each.option, *why)};
    if (!each.held(asked, made))
      return {errc::invalid_argument, fmt::format("{} has no effect: this program sets {} itself",
                                                  each.option, who_holds(each.holder, made))};
  }
  return {};
}

} // namespace troupe
