#include "actors/graph/field_checks.hpp"

#include "actors/graph/plan.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

namespace {

// -- why a graph has no such part --

using reason = std::optional<std::string>;

/// Returns the reason of the store; nullopt if it has the part.
template <std::string_view store_rules::*why>
reason of_store(const plan& made) {
  const auto text = made.rules().*why;
  return text.empty() ? std::nullopt : reason{made.store_name + std::string{text}};
}
constexpr auto* why_no_steps = of_store<&store_rules::why_no_steps>;
reason why_no_stale_steps(const plan& made) {
  if (auto why = why_no_steps(made))
    return why;
  if (!any_table(made.job, &mode_traits::stale_steps))
    return fmt::format("the tables of {} are {}, whose steps have no staleness", made.store_name,
                       to_string(made.options.sync));
  return std::nullopt;
}
reason why_no_workers(const plan&) { return std::nullopt; }
reason why_no_workers_alone(const plan& made) {
  if (!made.pipeline)
    return std::nullopt;
  return made.workers_name + " is a pipeline, and only workers have this option";
}
reason why_no_push_limit(const plan& made) {
  if (!goes_by_clocks(made.job))
    return std::nullopt;
  return fmt::format("{} goes by clocks (bsp), and pushes of a clock wait for each other, so no "
                     "limit holds them back",
                     made.store_name);
}
reason why_no_pipeline(const plan& made) {
  if (made.pipeline)
    return std::nullopt;
  return made.workers_name + " has workers, and no parts of a model";
}
reason why_no_reducer(const plan& made) {
  if (made.has<reduce>())
    return std::nullopt;
  return "no reducer adds up the gradients of " + made.workers_name
         + " (--workers-per-process 2 adds one, if the program takes the stages of the command "
           "line)";
}
reason why_no_codec(const plan& made) {
  if (made.has<compress>())
    return std::nullopt;
  return "the program puts no codec behind " + made.workers_name;
}

// -- tables that have a field of an optimiser --

bool any_table(const table_spec&) { return true; }
bool is_stale(const table_spec& table) { return table.sync.traits().stale_steps; }
/// A server function gets no such field.
bool has_own_step(const table_spec& table) { return table.optimizer.kind != optimizer_kind::user; }

/// Says which part of a graph has the fields of a holder.
struct field_owner {
  holder what;
  std::string plan::*node;
  std::string_view name; ///< In messages; {}: the node.
  reason (*why_missing)(const plan& made);
  /// Returns whether a table has the field. Null: a node or a stage has it.
  bool (*has_table)(const table_spec&) = nullptr;
};

constexpr std::string_view of_tables = "it for the tables of {}";
constexpr std::array owners{
  field_owner{holder::servers, &plan::store_name, "the servers of {}",
              of_store<&store_rules::why_no_servers>},
  field_owner{holder::checkpoints, &plan::store_name, "the checkpoints of {}",
              of_store<&store_rules::why_no_checkpoints>},
  field_owner{holder::sync, &plan::store_name, of_tables, of_store<&store_rules::why_no_sync>,
              any_table},
  field_owner{holder::steps, &plan::store_name, of_tables, why_no_steps, any_table},
  field_owner{holder::own_steps, &plan::store_name, of_tables, why_no_steps, has_own_step},
  field_owner{holder::stale_steps, &plan::store_name, of_tables, why_no_stale_steps, is_stale},
  field_owner{holder::workers, &plan::workers_name, "the workers of {}", why_no_workers},
  field_owner{holder::workers_alone, &plan::workers_name, "the workers of {}",
              why_no_workers_alone},
  field_owner{holder::push_limit, &plan::workers_name, "the workers of {}", why_no_push_limit},
  field_owner{holder::pipeline, &plan::workers_name, "the pipeline {}", why_no_pipeline},
  field_owner{holder::reducer, &plan::workers_name, "the reducer", why_no_reducer},
  field_owner{holder::codec, &plan::workers_name, "the codec", why_no_codec},
};

/// Returns null for fields of the run.
const field_owner* owner_of(const field& row) {
  const auto* const found = std::ranges::find(owners, row.kind.holder, &field_owner::what);
  return found == owners.end() ? nullptr : found;
}

/// Returns whether the graph has the value of the command line.
bool is_held(const field& row, const field_owner& where, const run_options& asked,
             const plan& made) {
  const auto wanted = row.kind.print(asked);
  if (!where.has_table)
    return row.kind.print(made.options) == wanted;
  auto held = made.options;
  return std::ranges::any_of(made.job.tables, [&](const table_spec& table) {
    held.optimizer = table.optimizer;
    held.sync = table.sync;
    return !table.frozen && where.has_table(table) && row.kind.print(held) == wanted;
  });
}

/// Returns why the lines of a pipeline cannot have this value; nullopt: they can.
reason why_not_of_lines(const field& row, const run_options& asked, const plan& made) {
  if (!made.pipeline || row.option != "--stragglers"
      || asked.workers.stragglers <= straggler_measure::warned)
    return std::nullopt;
  return fmt::format("{} is a pipeline, and the first part of a line cannot tell which part is "
                     "slow: use --stragglers warn or off",
                     made.workers_name);
}

/// Checks a field of the supervision of actors. Its range is that of workers.
result<void> check_supervision(const field& row, const plan& made) {
  if (row.kind.holder != holder::workers || !row.member.starts_with("supervision::"))
    return {};
  auto held = made.options;
  for (const auto& node : made.actor_nodes) {
    held.workers.on_death = node.what.on_death;
    if (auto fine = row.kind.check(held); !fine)
      return {errc::invalid_argument,
              fmt::format("{}: {} {}", node.name, row.member, fine.error().text)};
  }
  return {};
}

} // namespace

result<void> check_effects(const run_options& asked, const plan& made, const field_table& table) {
  for (const auto& row : rows_of(table)) {
    const auto* const where = owner_of(row);
    if (!where || !asked.given.contains(row.option))
      continue;
    const bool held = is_held(row, *where, asked, made);
    if (held && where->what == holder::sync) // An own store has one sync, too.
      continue;
    if (const auto why = where->why_missing(made))
      return {errc::invalid_argument, fmt::format("{} has no effect: {}", row.option, *why)};
    if (held)
      continue;
    if (const auto why = why_not_of_lines(row, asked, made))
      return {errc::invalid_argument, fmt::format("{} has no effect: {}", row.option, *why)};
    return {errc::invalid_argument,
            fmt::format("{} has no effect: this program sets {} itself", row.option,
                        fmt::format(fmt::runtime(where->name), made.*where->node))};
  }
  return {};
}

result<void> check_ranges(const plan& made, const field_table& table) {
  for (const auto& row : rows_of(table)) {
    const auto* const where = owner_of(row);
    if (!where || where->has_table || !row.kind.check) // The job checks its tables.
      continue;
    if (auto fine = row.kind.check(made.options); !fine)
      return {errc::invalid_argument,
              fmt::format("{}: {} {}", made.*where->node, row.member, fine.error().text)};
    if (auto fine = check_supervision(row, made); !fine)
      return fine;
  }
  return {};
}

} // namespace troupe
