// Writes a plan for people, and for graphviz.
#include "actors/graph/plan.hpp"

#include "fmt/format.h"

#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

namespace {

std::string text_of_codec(const plan& what) {
  if (!what.compression)
    return "codec";
  std::vector<std::string> parts;
  for (const auto& [table, how] : what.options.codec.pushes)
    parts.push_back((table.empty() ? "" : table + "=") + to_string(how));
  if (what.options.codec.pulls != encoding::f32)
    parts.push_back(std::string{"pulls "} + to_string(what.options.codec.pulls));
  return fmt::format("codec({})", fmt::join(parts, ", "));
}

std::string text_of(const stage& part, const plan& what) {
  return part.get<compress>() ? text_of_codec(what) : part.name();
}

std::string grouped(std::uint64_t number) {
  auto text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::string text_of_workers(const plan& what) {
  const auto& some = what.options.workers;
  if (what.pipeline)
    return fmt::format("pipeline of {} parts x{}, {}, {} micro-batch{}", what.pipeline->count(),
                       some.count, to_string(what.pipeline->micro.schedule.order),
                       what.pipeline->micro.count, what.pipeline->micro.count == 1 ? "" : "es");
  auto text = fmt::format("workers x{}", some.count);
  if (some.backups > 0)
    text += fmt::format(" + {}", some.backups);
  if (some.per_process > 1)
    text += fmt::format(", {} a process", some.per_process);
  if (const auto* const local = some.make.local())
    text += fmt::format(", {} local steps", local->steps);
  return text;
}

/// Returns "asp" or, where a large staleness lowers rates, "asp, full rate to staleness 4".
std::string text_of_sync(const plan& what) {
  std::set<float> limits;
  for (const auto& table : what.job.tables)
    if (table.sync.traits().stale_steps && table.optimizer.full_rate_staleness > 0)
      limits.insert(table.optimizer.full_rate_staleness);
  const auto text = to_string(what.options.sync);
  return limits.empty()
           ? text
           : fmt::format("{}, full rate to staleness {}", text, fmt::join(limits, " or "));
}

std::string text_of_tables(const plan& what) {
  std::uint64_t floats = 0;
  std::size_t sparse = 0, frozen = 0;
  for (const auto& table : what.job.tables) {
    floats += table.size();
    sparse += table.is_sparse();
    frozen += table.frozen;
  }
  const auto count = what.job.tables.size();
  auto text = fmt::format("{} table{}", count, count == 1 ? "" : "s");
  if (floats > 0)
    text += fmt::format(", {} floats", grouped(floats));
  if (sparse > 0)
    text += fmt::format(", {} sparse", sparse);
  if (frozen > 0)
    text += fmt::format(", {} frozen", frozen);
  return what.job.gossip ? text : text + ", " + text_of_sync(what);
}

/// Returns the names of stages for which a predicate is true, separated by commas.
template <class Predicate>
std::string names_where(const plan& what, Predicate is_so) {
  std::vector<std::string> names;
  for (const auto& part : what.path)
    if (is_so(part))
      names.push_back(text_of(part, what));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string text_of_replay(const plan& what) {
  if (const auto why = what.rules().why_no_replay; !why.empty())
    return "no, " + what.store_name + std::string{why};
  if (mixes_clocks(what.job))
    return "no, some tables are bsp and others are not";
  if (what.pipeline)
    return "no, parcels between parts are not recorded";
  if (!what.channels.empty())
    return "no, parcels of channels are not recorded";
  if (what.compression)
    return "no, the codec changes values on their way";
  if (what.options.workers.per_process > 1)
    return "no, workers share a process";
  if (const auto* const local = what.options.workers.make.local(); local && local->keep)
    return "no, " + what.workers_name + " keeps the state of its local steps";
  const auto actors = names_where(what, [](const stage& part) {
    const auto* const own = part.get<stage::of_program>();
    return own != nullptr && own->actor;
  });
  if (!actors.empty())
    return "no, " + actors + " runs as an actor";
  const auto lossy = names_where(what, [](const stage& part) {
    const auto* const own = part.get<stage::of_program>();
    return own != nullptr && !own->promises.pure;
  });
  return lossy.empty() ? "yes" : "no, " + lossy + " may keep a state";
}

/// Returns the nodes of actors and the channels that the program describes; those of its pipeline
/// are not among them.
auto own_nodes(const plan& what) {
  return what.actor_nodes | std::views::filter([&](const planned_actors& node) {
           return !what.pipeline || node.first < what.pipeline->first;
         });
}
auto own_channels(const plan& what) {
  return what.channels | std::views::filter([](const planned_channel& channel) {
           return !channel.from.port.node.empty();
         });
}

std::string text_of_actors(const planned_actors& node) {
  return fmt::format("actors x{}", node.what.count);
}

/// Returns a line for each part of the pipeline: its tables, and the most inputs that it holds.
std::string text_of_parts(const plan& what) {
  std::string text;
  for (std::uint32_t part = 0; what.pipeline && part < what.pipeline->count(); ++part)
    text +=
      fmt::format("{:<{}} {}; holds at most {} of {} micro-batches\n", fmt::format("part {}", part),
                  node_name_max, fmt::join(what.pipeline->parts[part].tables, ", "),
                  what.pipeline->micro.schedule.held_max(part, what.pipeline->count(),
                                                         what.pipeline->micro.count),
                  what.pipeline->micro.count);
  return text;
}

/// Returns a box for each part of the pipeline, in a frame.
std::string dot_of_parts(const plan& what) {
  auto text = fmt::format("  subgraph cluster_{0} {{\n    label=\"{0}\\n{1}\";\n"
                          "    fontname=\"sans-serif\";\n",
                          what.workers_name, text_of_workers(what));
  for (std::uint32_t part = 0; part < what.pipeline->count(); ++part)
    text += fmt::format("    \"part {0}\" [shape=box, label=\"part {0}\\n{1}\"];\n", part,
                        fmt::join(what.pipeline->parts[part].tables, ", "));
  for (std::uint32_t part = 1; part < what.pipeline->count(); ++part)
    text += fmt::format("    \"part {}\" -> \"part {}\" [dir=both];\n", part - 1, part);
  return text + "  }\n";
}

/// Returns the nodes that ask the store: the workers, or each part of the pipeline. The space in
/// a part's name keeps it apart from nodes of the program.
std::vector<std::string> dot_sources(const plan& what) {
  if (!what.pipeline)
    return {what.workers_name};
  std::vector<std::string> parts;
  for (std::uint32_t part = 0; part < what.pipeline->count(); ++part)
    parts.push_back(fmt::format("\"part {}\"", part));
  return parts;
}

std::string text_of_loss(const planned_channel& channel) {
  return fmt::format("a death: at most {} parcel{} of each lane", channel.window,
                     channel.window == 1 ? "" : "s");
}

} // namespace

std::string to_text(const plan& what) {
  std::string path;
  for (const auto& part : what.path)
    path += "-> " + text_of(part, what) + " ";
  const auto row = [](const std::string& name, const std::string& kind, const std::string& rest) {
    return rest.empty() ? fmt::format("{:<{}} {}\n", name, node_name_max, kind)
                        : fmt::format("{:<{}} {:<24}{} {}\n", name, node_name_max, kind,
                                      kind.size() > 24 ? " " : "", rest);
  };
  auto text = row(what.workers_name, text_of_workers(what), path + "=> " + what.store_name);
  text += text_of_parts(what);
  text += row(what.store_name, what.rules().text(what), text_of_tables(what));
  for (const auto& each : what.evaluators)
    text += row(each.name, "evaluator", "=> " + what.store_name);
  for (const auto& each : own_nodes(what))
    text += row(each.name, text_of_actors(each), each.has_store ? "=> " + what.store_name : "");
  for (const auto& each : own_channels(what))
    text +=
      row(each.from.port.node, fmt::format("channel, {}", to_string(each.shape)),
          fmt::format("~> {}, window {}; {}", each.to.port.node, each.window, text_of_loss(each)));
  text += fmt::format("exactly once: {}   lost at one death: {}\nsimulate: {}   record and replay: "
                      "{}\n",
                      what.rules().is_exactly_once ? "yes" : "no", what.rules().lost_at_death(what),
                      what.rules().has_servers ? "yes" : "no", text_of_replay(what));
  return text;
}

std::string to_dot(const plan& what) {
  const auto box = [](const std::string& name, const std::string& text, std::string_view shape) {
    return fmt::format("  {} [shape={}, label=\"{}\\n{}\"];\n", name, shape, name, text);
  };
  std::string text = "digraph troupe {\n  rankdir=LR;\n  node [fontname=\"sans-serif\"];\n";
  text += what.pipeline ? dot_of_parts(what) : box(what.workers_name, text_of_workers(what), "box");
  auto last = dot_sources(what);
  for (const auto& next : what.path) {
    text += fmt::format("  {} [shape=ellipse, label=\"{}\"];\n", next.name(), text_of(next, what));
    for (const auto& each : last)
      text += fmt::format("  {} -> {};\n", each, next.name());
    last = {next.name()};
  }
  text += box(what.store_name, what.rules().text(what) + "\\n" + text_of_tables(what), "cylinder");
  for (const auto& each : last)
    text += fmt::format("  {} -> {} [dir=both];\n", each, what.store_name);
  for (const auto& each : what.evaluators) {
    text += box(each.name, "evaluator", "box");
    text += fmt::format("  {} -> {} [dir=back];\n", each.name, what.store_name);
  }
  for (const auto& each : own_nodes(what)) {
    text += box(each.name, text_of_actors(each), "box");
    if (each.has_store)
      text += fmt::format("  {} -> {} [dir=back];\n", each.name, what.store_name);
  }
  for (const auto& each : own_channels(what))
    text += fmt::format("  {} -> {} [style=dashed, label=\"{}, window {}\"];\n",
                        each.from.port.node, each.to.port.node, to_string(each.shape), each.window);
  return text + "}\n";
}

} // namespace troupe
