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
    return !table.frozen && table.sync.traits().stale_steps
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

// -- holders: why a graph has none, and what it is called --

std::optional<std::string> why_no_servers(const run_options&, const plan& made) {
  if (made.store == store_kind::shared_memory)
    return made.store_name + " is shared memory, without servers";
  if (made.store == store_kind::all_reduce)
    return made.store_name + " is an all-reduce, without servers";
  if (made.store == store_kind::own_store)
    return made.store_name + " is an own store, which is one server without replicas";
  return std::nullopt;
}
std::optional<std::string> why_no_checkpoints(const run_options&, const plan& made) {
  if (made.store == store_kind::shared_memory)
    return made.store_name + " is shared memory, without checkpoints";
  return std::nullopt;
}
std::optional<std::string> why_no_steps(const run_options&, const plan& made) {
  if (made.store == store_kind::own_store)
    return made.store_name + " is an own store, whose keeper takes each push by itself (asp)";
  return std::nullopt;
}
/// An own store can have the one consistency that it has anyway.
std::optional<std::string> why_no_other_sync(const run_options& asked, const plan& made) {
  return is_sync_of_a_table(asked, made) ? std::nullopt : why_no_steps(asked, made);
}
std::optional<std::string> why_no_stale_steps(const run_options& asked, const plan& made) {
  if (auto why = why_no_steps(asked, made))
    return why;
  if (!any_table(made.job, &mode_traits::stale_steps))
    return fmt::format("the tables of {} are {}, whose steps have no staleness", made.store_name,
                       to_string(made.options.sync));
  return std::nullopt;
}
std::optional<std::string> why_no_workers(const run_options&, const plan&) { return std::nullopt; }
std::optional<std::string> why_no_reducer(const run_options&, const plan& made) {
  if (made.has<reduce>())
    return std::nullopt;
  return "no reducer adds up the gradients of " + made.workers_name
         + " (--workers-per-process 2 adds one, if the program takes the stages of the command "
           "line)";
}
std::optional<std::string> why_no_codec(const run_options&, const plan& made) {
  if (made.has<compress>())
    return std::nullopt;
  return "the program puts no codec behind " + made.workers_name;
}

std::string name_of_servers(const plan& made) { return "the servers of " + made.store_name; }
std::string name_of_checkpoints(const plan& made) {
  return "the checkpoints of " + made.store_name;
}
std::string name_of_tables(const plan& made) { return "it for the tables of " + made.store_name; }
std::string name_of_workers(const plan& made) { return "the workers of " + made.workers_name; }
std::string name_of_reducer(const plan&) { return "the reducer"; }
std::string name_of_codec(const plan&) { return "the codec"; }

constexpr option_holder of_servers{why_no_servers, name_of_servers};
constexpr option_holder of_checkpoints{why_no_checkpoints, name_of_checkpoints};
constexpr option_holder of_steps{why_no_steps, name_of_tables};
constexpr option_holder of_sync{why_no_other_sync, name_of_tables};
constexpr option_holder of_stale_steps{why_no_stale_steps, name_of_tables};
constexpr option_holder of_workers{why_no_workers, name_of_workers};
constexpr option_holder of_reducer{why_no_reducer, name_of_reducer};
constexpr option_holder of_codec{why_no_codec, name_of_codec};

constexpr std::array known_fields{
  option_field{"--servers", &of_servers, in_servers<&servers::count>},
  option_field{"--replicas", &of_servers, in_servers<&servers::replicas>},
  option_field{"--shards", &of_servers, in_servers<&servers::shards>},
  option_field{"--durability", &of_servers, in_servers<&servers::durability>},
  option_field{"--apply-batch", &of_servers, in_servers<&servers::apply_batch>},
  option_field{"--verify-replicas", &of_servers, in_servers<&servers::verify_replicas>},
  option_field{"--reads", &of_servers, in_servers<&servers::reads>},
  option_field{"--checkpoint-every", &of_checkpoints, is_same_period},
  option_field{"--checkpoint-keep", &of_checkpoints, is_same_keep},
  option_field{"--checkpoint-scrub", &of_checkpoints, in_servers<&servers::scrub_interval>},
  option_field{"--sync", &of_sync, is_sync_of_a_table},
  option_field{"--optimizer", &of_steps, in_a_table<&optimizer_spec::kind>},
  option_field{"--lr", &of_steps, in_a_table<&optimizer_spec::learning_rate>},
  option_field{"--momentum", &of_steps, in_a_kernel<&optimizer_spec::momentum>},
  option_field{"--beta2", &of_steps, in_a_kernel<&optimizer_spec::beta2>},
  option_field{"--epsilon", &of_steps, in_a_kernel<&optimizer_spec::epsilon>},
  option_field{"--weight-decay", &of_steps, in_a_kernel<&optimizer_spec::weight_decay>},
  option_field{"--l1", &of_steps, in_a_kernel<&optimizer_spec::l1>},
  option_field{"--ftrl-beta", &of_steps, in_a_kernel<&optimizer_spec::beta>},
  option_field{"--clip-norm", &of_steps, in_a_table<&optimizer_spec::clip_norm>},
  option_field{"--clip-value", &of_steps, in_a_kernel<&optimizer_spec::clip_value>},
  option_field{"--staleness-lr", &of_stale_steps, is_rate_of_stale_steps},
  option_field{"--workers", &of_workers, in_workers<&workers::count>},
  option_field{"--workers-per-process", &of_workers, in_workers<&workers::per_process>},
  option_field{"--pull-ahead", &of_workers, in_workers<&workers::ahead>},
  option_field{"--backup-workers", &of_workers, in_workers<&workers::backups>},
  option_field{"--delta-pulls", &of_workers, in_workers<&workers::delta_pulls>},
  option_field{"--push-memory", &of_workers, in_workers<&workers::push_memory_mib>},
  option_field{"--stragglers", &of_workers, in_workers<&workers::stragglers>},
  option_field{"--straggler-time-scale", &of_workers, in_workers<&workers::straggler_time_scale>},
  option_field{"--reduce-wait", &of_reducer, is_same<&run_options::reducer, &reduce::wait>},
  option_field{"--compress", &of_codec, is_same<&run_options::codec, &compress::pushes>},
  option_field{"--compress-pulls", &of_codec, is_same<&run_options::codec, &compress::pulls>},
};

} // namespace

std::span<const option_field> option_fields() { return known_fields; }

result<void> check_effects(const run_options& asked, const plan& made) {
  for (const auto& each : known_fields) {
    if (!asked.given.contains(std::string{each.option}))
      continue;
    if (const auto why = each.holder->why_missing(asked, made))
      return {errc::invalid_argument, fmt::format("{} has no effect: {}", each.option, *why)};
    if (!each.held(asked, made))
      return {errc::invalid_argument, fmt::format("{} has no effect: this program sets {} itself",
                                                  each.option, each.holder->name(made))};
  }
  return {};
}

} // namespace troupe
