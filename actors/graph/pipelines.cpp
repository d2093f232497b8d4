#include "actors/graph/pipelines.hpp"

#include "actors/graph/plan.hpp"
#include "actors/protocol/pipeline/part_flow.hpp"
#include "actors/protocol/process_name.hpp"
#include "base/quote.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

constexpr std::uint32_t parts_max = 64;
/// Words between two parts, beside the micro-batches of a batch.
constexpr std::uint32_t other_words = 8;

result<void> refuse_pipeline(std::string text) { return {errc::invalid_argument, std::move(text)}; }

/// Finds the tables of each part.
result<void> take_tables(const plan& what, planned_pipeline& planned) {
  const auto& tables = what.job.tables;
  std::vector<std::optional<std::size_t>> owner(tables.size());
  for (std::size_t part = 0; part < planned.parts.size(); ++part) {
    auto& mine = planned.tables.emplace_back();
    for (const auto& name : planned.parts[part].tables) {
      const auto found = std::ranges::find(tables, name, &table_spec::name);
      if (found == tables.end())
        return refuse_pipeline(fmt::format("{}: part {} has the table {}, and {} has no such table",
                                           what.workers_name, part, quote(name), what.store_name));
      const auto at = static_cast<std::size_t>(found - tables.begin());
      if (owner[at])
        return refuse_pipeline(
          fmt::format("{}: table {} is in part {} and in part {}: a table has one part",
                      what.workers_name, quote(name), *owner[at], part));
      owner[at] = part;
      mine.push_back({static_cast<std::uint32_t>(at)});
    }
  }
  for (std::size_t i = 0; i < tables.size(); ++i)
    if (!owner[i])
      return refuse_pipeline(fmt::format("{}: table {} is in no part: name it in one of them",
                                         what.workers_name, quote(tables[i].name)));
  return {};
}

/// Checks the store before anything else of a pipeline: other mistakes may come from its kind.
result<void> check_store(const plan& made) {
  const auto& rules = made.rules();
  if (rules.kind == store_kind::servers)
    return {};
  return refuse_pipeline(fmt::format(
    "{} is a pipeline, whose parts push to servers, and {}{}: use {}", made.workers_name,
    made.store_name, rules.why_no_servers, rules.make ? "--sync asp or ssp" : "troupe::servers"));
}

result<void> check_parts(const std::string& name, const pipeline& what) {
  if (what.parts.size() < 2 || what.parts.size() > parts_max)
    return refuse_pipeline(fmt::format("{} has {} part{}, and a pipeline has 2 to {}", name,
                                       what.parts.size(), what.parts.size() == 1 ? "" : "s",
                                       parts_max));
  for (std::size_t i = 0; i < what.parts.size(); ++i) {
    if (what.parts[i].tables.empty())
      return refuse_pipeline(fmt::format(
        "{}: part {} has no tables: give it one, or put its work into another part", name, i));
    if (!what.parts[i].make)
      return refuse_pipeline(fmt::format("{}: part {} has no maker: set part_spec::make", name, i));
  }
  return {};
}

/// Adds the two channels between a part and the next one.
void add_channels(const std::string& upper, const planned_channel::side& above,
                  const std::string& lower, const planned_channel::side& below, plan& made) {
  const auto add = [&](const std::string& from, const planned_channel::side& sends,
                       const std::string& to, const planned_channel::side& takes) {
    made.channels.push_back({.name = from + ">" + to,
                             .from = sends,
                             .to = takes,
                             .shape = join_shape::one_to_one,
                             .window = made.pipeline->micro.count + other_words,
                             .head = head_type_of<part_word>(),
                             .head_bytes = sizeof(part_word)});
  };
  add(upper, above, lower, below);
  add(lower, below, upper, above);
}

} // namespace

std::optional<std::uint32_t> planned_pipeline::part_of(const member_id& who) const {
  if (who.role == role::worker)
    return 0;
  if (who.role != role::actor || who.index < first || who.index - first >= lines * (count() - 1))
    return std::nullopt;
  return 1 + (who.index - first) / lines;
}

std::uint32_t planned_pipeline::line_of(const member_id& who) const {
  return who.role == role::worker ? who.index : (who.index - first) % lines;
}

member_id planned_pipeline::member_of(std::uint32_t index) const {
  const auto line = index / count(), part = index % count();
  if (part == 0)
    return {role::worker, line, {}};
  return {role::actor, first + (part - 1) * lines + line, {}};
}

result<void> take_pipeline(const graph& described, plan& made) {
  if (described.pipeline_node() == nullptr)
    return {};
  const auto& what = *described.pipeline_node();
  if (auto fine = check_store(made); !fine)
    return fine;
  if (auto fine = check_parts(made.workers_name, what); !fine)
    return fine;
  made.pipeline = planned_pipeline{.parts = what.parts,
                                   .tables = {},
                                   .micro = what.micro,
                                   .lines = what.lines,
                                   .first = made.options.actors};
  made.options.micro = what.micro;
  // The first part waits for the others, so its time does not say which process is slow.
  if (auto& measure = made.options.workers.stragglers)
    measure = std::min(*measure, straggler_measure::warned);
  if (auto fine = take_tables(made, *made.pipeline); !fine)
    return fine;
  std::string upper = made.workers_name;
  planned_channel::side above{{}, role::worker, 0, what.lines};
  for (std::uint32_t part = 1; part < made.pipeline->count(); ++part) {
    auto name = fmt::format("{}.{}", made.workers_name, part);
    const planned_channel::side below{{}, role::actor, made.options.actors, what.lines};
    own_actors node;
    node.count = what.lines;
    node.on_death = what.on_death;
    made.actor_nodes.push_back({name, std::move(node), below.first, true});
    made.options.actors += what.lines;
    add_channels(upper, above, name, below, made);
    upper = std::move(name);
    above = below;
  }
  if (made.options.actors > actors_max)
    return refuse_pipeline(
      fmt::format("{} has {} processes of later parts, and a job has at most {} actors",
                  made.workers_name, made.options.actors, actors_max));
  return {};
}

std::map<std::string, std::string> names_in_options(const plan& what) {
  std::map<std::string, std::string> names;
  const auto processes = what.pipeline ? what.pipeline->lines * what.pipeline->count() : 0;
  for (std::uint32_t i = 0; i < processes; ++i)
    names.emplace(to_string(process_of(what.pipeline->member_of(i))),
                  fmt::format("{}:{}", what.workers_name, i));
  return names;
}

result<void> check_pipeline(const plan& what) {
  if (!what.pipeline)
    return {};
  const auto wrong = [&](const std::string& text) {
    return refuse_pipeline(what.workers_name + text);
  };
  for (const auto& table : what.job.tables) {
    const auto of_table = fmt::format(" is a pipeline, and table {}", quote(table.name));
    if (table.sync.traits().clock_updates)
      return wrong(of_table + " is bsp, whose steps need all tables in one push: use asp or ssp");
    if (table.is_sparse())
      return wrong(of_table + " is sparse: make it dense");
    if (table.frozen)
      return wrong(of_table + " is frozen: leave it unfrozen, or keep it within the part");
    if (table.optimizer.clip_norm > 0)
      return wrong(of_table + " clips by norm, which is that of all parts: use --clip-value");
  }
  if (what.options.workers.on_death.then == outcome::leave_out)
    return wrong(": a line needs all of its parts, so on_death.then must be fail_job");
  if (what.has<reduce>())
    return wrong(" is a pipeline, each line of which pushes by itself: leave the reducer out");
  if (what.options.record_directory || what.options.replay_directory)
    return refuse_pipeline(
      fmt::format("--{}: {} is a pipeline, whose parcels a replay does not have: leave "
                  "the option out",
                  what.options.record_directory ? "record" : "replay", what.workers_name));
  const auto& schedule = what.pipeline->micro.schedule;
  if (schedule.order == micro_order::fill_drain && schedule.ahead != micro_schedule{}.ahead)
    return refuse_pipeline(
      fmt::format("--pipeline-ahead: {} has the order fill-drain, in which no part is ahead: use "
                  "--pipeline-order 1f1b, or leave it out",
                  what.workers_name));
  if (what.pipeline->micro.count > what.job.batch_samples)
    return refuse_pipeline(
      fmt::format("--micro-batches: {} cuts a batch of {} samples into {}: use --batch "
                  "{} or more",
                  what.workers_name, what.job.batch_samples, what.pipeline->micro.count,
                  what.pipeline->micro.count));
  return {};
}

} // namespace troupe
