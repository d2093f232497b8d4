#include "actors/graph/graph.hpp"

#include "actors/graph/channels.hpp"
#include "actors/graph/options/options.hpp"
#include "base/quote.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <iterator>

namespace troupe {

graph::graph() = default;
graph::graph(const graph&) = default;
graph::graph(graph&&) noexcept = default;
graph& graph::operator=(const graph&) = default;
graph& graph::operator=(graph&&) noexcept = default;
graph::~graph() = default;

std::size_t graph::put(const std::string& name, any_store what) {
  note_name(name, "node");
  stores_.push_back({name, std::move(what)});
  return stores_.size() - 1;
}

std::size_t graph::put(const std::string& name, workers what) {
  note_name(name, "node");
  workers_.push_back({name, std::move(what), {name}});
  return workers_.size() - 1;
}

std::size_t graph::put(const std::string& name, pipeline what) {
  workers as;
  as.samples = what.samples;
  as.count = what.lines;
  as.push_memory_mib = what.push_memory_mib;
  as.stragglers = what.stragglers;
  as.straggler_time_scale = what.straggler_time_scale;
  as.on_death = what.on_death;
  pipeline_ = std::move(what);
  return put(name, std::move(as));
}

std::size_t graph::put(const std::string& name, evaluate what) {
  note_name(name, "node");
  evaluators_.push_back({name, std::move(what), {name}});
  return evaluators_.size() - 1;
}

std::size_t graph::put(const std::string& name, own_actors what) {
  note_name(name, "node");
  actors_.push_back({name, std::move(what), {name}});
  return actors_.size() - 1;
}

graph::edge& graph::path_of_actors(std::size_t index) { return actors_[index].path; }
graph::edge& graph::path_of(const node<workers>& source) { return workers_[source.index_].path; }
graph::edge& graph::path_of(const node<pipeline>& source) { return workers_[source.index_].path; }
graph::edge& graph::path_of(const node<evaluate>& source) {
  return evaluators_[source.index_].path;
}

void graph::note_name(const std::string& name, std::string_view what) {
  constexpr std::string_view characters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  if (name.empty() || name.find_first_not_of(characters) != std::string::npos)
    note_mistake(
      fmt::format("{} is no name of a {}: use the characters a-z, 0-9 and _", quote(name), what));
  else if (name.size() > node_name_max)
    note_mistake(fmt::format("the name of the {} {} has {} characters: use at most {}", what,
                             quote(name), name.size(), node_name_max));
  else if (role_named(name))
    note_mistake(fmt::format("{} is the name of a role on the command line: rename the {}",
                             quote(name), what));
  else if (std::ranges::find(names_, name) != names_.end())
    note_mistake(fmt::format("two parts of the graph are named {}: rename one", quote(name)));
  names_.push_back(name);
}

void graph::note_mistake(const std::string& what) {
  if (mistake_.empty())
    mistake_ = what;
}

void graph::add_to(edge& path, stage next) {
  note_name(next.name(), "stage");
  path.stages.push_back(std::move(next));
}

void graph::add_to(edge& path, stage_list next) {
  for (auto& each : next)
    add_to(path, std::move(each));
}

void graph::end(edge& path, const graph* owner, const std::string& store) {
  if (owner != this)
    note_mistake(path.source + " leads to a node of another graph");
  if (path.store)
    note_mistake(path.source + " has two paths: call into() once");
  path.store = store;
}

void graph::put_join(const graph* from, const graph* to, join_of_ports what) {
  if (from != this || to != this)
    note_mistake(fmt::format("{} and {} are joined by another graph than their own: call join() of "
                             "the graph that has both",
                             what.from.node, what.to.node));
  joins_.push_back(std::move(what));
}

namespace {

result<void> check_tables(const std::vector<graph::named<any_store>>& stores) {
  for (const auto& store : stores)
    if (store.what.tables().empty())
      return {errc::invalid_argument, store.name + " has no tables: give it one or more"};
  for (std::size_t i = 0; i < stores.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      for (const auto& one : stores[i].what.tables())
        for (const auto& other : stores[j].what.tables())
          if (one.name == other.name)
            return {errc::invalid_argument,
                    fmt::format("{} and {} both have a table {}: a table lives in one store",
                                stores[j].name, stores[i].name, quote(one.name))};
  return {};
}

/// Checks the order of stages: those of the trainer, those of single batches, a reducer, a codec.
result<void> check_order(const graph::edge& path) {
  const stage* reducer = nullptr;
  const stage* codec = nullptr;
  const stage* actor = nullptr; // The first stage that is an actor.
  for (const auto& next : path.stages) {
    const auto* const own = next.get<stage::of_program>();
    const bool of_trainer = next.get<stage::of_trainer>() != nullptr;
    const auto wrong = [&](const char* text, const stage* other) {
      return result<void>{errc::invalid_argument,
                          fmt::format(fmt::runtime(text), next.name(), other ? other->name() : "")};
    };
    if (of_trainer && actor)
      return wrong(
        "{} changes gradients on the trainer's thread and stands behind {}: put it first", actor);
    if (codec && next.get<reduce>())
      return wrong("{1} stands before {0}, which cannot add up packed gradients: put {1} last",
                   codec);
    if (codec)
      return wrong("{1} stands before {0}, which cannot read packed gradients: put {1} last",
                   codec);
    if (reducer && next.get<reduce>())
      return wrong("{} and {} both add up gradients: leave one out", reducer);
    if (own && !own->promises.takes_sums && reducer)
      return wrong("{} works on single batches and stands behind {}, which adds them up: put it "
                   "before, or declare traits::takes_sums",
                   reducer);
    const bool callable = own          ? own->make || own->actor
                          : of_trainer ? static_cast<bool>(next.get<stage::of_trainer>()->change)
                                       : true;
    if (!callable)
      return wrong("{} has an empty function", nullptr);
    if (next.get<reduce>())
      reducer = &next;
    if (next.get<compress>())
      codec = &next;
    if (!of_trainer && !actor)
      actor = &next;
  }
  return {};
}

} // namespace

result<void> graph::validate() const {
  const auto wrong = [](std::string text) {
    return result<void>{errc::invalid_argument, std::move(text)};
  };
  if (!mistake_.empty())
    return wrong(mistake_);
  if (stores_.empty())
    return wrong("the graph has no store: add servers with tables");
  if (workers_.empty())
    return wrong("the graph has no workers: add troupe::workers");
  if (auto fine = check_tables(stores_); !fine)
    return fine;
  if (workers_.size() > 1)
    return wrong(fmt::format("{} and {} are both workers: a graph has one node of workers, or one "
                             "pipeline",
                             workers_[0].name, workers_[1].name));
  if (stores_.size() > 1)
    return wrong(fmt::format("{} and {} are both stores: a graph has one so far", stores_[0].name,
                             stores_[1].name));
  const auto& source = workers_.front();
  if (!source.what.make && !pipeline_)
    return wrong(source.name + " makes no trainers: set workers::make");
  if (!source.path.store)
    return wrong(fmt::format("{0} asks no store: call {0}.into(...)", source.name));
  for (const auto& each : evaluators_)
    if (each.what.make && !each.path.store)
      return wrong(fmt::format("{0} asks no store: call {0}.into(...)", each.name));
    else if (!each.what.make)
      return wrong(each.name + " makes no evaluator: set evaluate::make");
  if (auto fine = check_channels(*this); !fine)
    return fine;
  return check_order(source.path);
}

} // namespace troupe
