#include "actors/graph/channels.hpp"

#include "actors/graph/plan.hpp"
#include "base/exception_text.hpp"
#include "base/quote.hpp"
#include "base/splitmix64.hpp"
#include "base/user_code.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

namespace troupe {

const char* to_string(join_shape which) {
  switch (which) {
  case join_shape::spread: return "spread";
  case join_shape::one_to_one: return "one_to_one";
  case join_shape::circle: return "circle";
  }
  return "unknown";
}

namespace {

result<void> refuse(std::string text) { return {errc::invalid_argument, std::move(text)}; }

std::string members_text(std::uint32_t count) {
  return fmt::format("{} member{}", count, count == 1 ? "" : "s");
}

/// Returns the members of a node of actors or workers.
std::uint32_t count_of(const graph& described, const std::string& node) {
  for (const auto& each : described.actor_nodes())
    if (each.name == node)
      return each.what.count;
  for (const auto& each : described.worker_nodes())
    if (each.name == node)
      return each.what.count + each.what.backups;
  return 0;
}

result<void> check_actors(const graph& described) {
  std::uint64_t all = 0;
  for (const auto& each : described.actor_nodes()) {
    all += each.what.count;
    if (each.what.count == 0)
      return refuse(each.name + " has no actors: set actors::count to 1 or more");
    if (!each.what.make)
      return refuse(
        each.name + " makes no actors: set actors::make, or give the class a default constructor");
  }
  if (all > actors_max)
    return refuse(
      fmt::format("the graph has {} actors, and a job has at most {}", all, actors_max));
  return {};
}

/// Checks the shape of a join, whose nodes have so many members.
result<void> check_shape(const join_of_ports& join, std::uint32_t from, std::uint32_t to) {
  const bool is_one_node = join.from.node == join.to.node;
  const auto shape = std::string{"join_shape::"} + to_string(join.shape);
  if (join.shape != join_shape::spread && from != to)
    return refuse(fmt::format("{} has {} and {} has {}: {} needs equal counts", join.from.node,
                              members_text(from), join.to.node, to, shape));
  if (is_one_node && join.shape != join_shape::circle)
    return refuse(fmt::format("{} would join each member of {} with itself: use join_shape::circle",
                              shape, join.from.node));
  if (is_one_node && from == 1)
    return refuse(fmt::format("{} has 1 member, which {} would join with itself: raise its count",
                              join.from.node, shape));
  return {};
}

/// Checks that the trainers of a node have a port, if their class is known.
result<void> check_class(const graph& described, const joined_port& port,
                         const std::string& other) {
  for (const auto& node : described.worker_nodes()) {
    const auto& made = node.what.make.makes();
    if (node.name == port.node && made && !port.is_in(made))
      return refuse(fmt::format("{} makes trainers of the class {}, which lacks the port that is "
                                "joined with {}",
                                node.name, type_text(made.type()), other));
  }
  return {};
}

result<void> check_join(const graph& described, const join_of_ports& join) {
  if (join.window < 1 || join.window > channel_window_max)
    return refuse(fmt::format("the channel from {} to {} has a window of {}: use 1 to {}",
                              join.from.node, join.to.node, join.window, channel_window_max));
  if (auto fits = check_class(described, join.from, join.to.node); !fits)
    return fits;
  if (auto fits = check_class(described, join.to, join.from.node); !fits)
    return fits;
  return check_shape(join, count_of(described, join.from.node), count_of(described, join.to.node));
}

/// Checks that no member has more ports than its reports hold.
result<void> check_count(const std::vector<join_of_ports>& joins) {
  std::map<std::string, std::size_t> ports; // By node.
  for (const auto& join : joins)
    for (const auto* node : {&join.from.node, &join.to.node})
      if (++ports[*node] > ports_max)
        return refuse(fmt::format("{} has more than {} joined ports, and a member has at most {}: "
                                  "send several kinds of parcels through one port",
                                  *node, ports_max, ports_max));
  return {};
}

/// Checks that each port is joined once.
result<void> check_once(const std::vector<join_of_ports>& joins) {
  std::vector<std::pair<const joined_port*, const joined_port*>> ends; // And the other end.
  for (const auto& join : joins) {
    ends.emplace_back(&join.from, &join.to);
    ends.emplace_back(&join.to, &join.from);
  }
  for (auto one = ends.begin(); one != ends.end(); ++one)
    for (auto other = ends.begin(); other != one; ++other)
      if (one->first->is(*other->first))
        return refuse(fmt::format("one port of {} is joined with {} and with {}: a port is joined "
                                  "once, so give it another port",
                                  one->first->node, other->second->node, one->second->node));
  return {};
}

} // namespace

result<void> check_channels(const graph& described) {
  if (auto fits = check_actors(described); !fits)
    return fits;
  for (const auto& join : described.joins())
    if (auto fits = check_join(described, join); !fits)
      return fits;
  if (auto fits = check_count(described.joins()); !fits)
    return fits;
  return check_once(described.joins());
}

result<void> check_channels(const plan& what) {
  if (what.actor_nodes.empty() && what.channels.empty())
    return {};
  if (const auto why = what.rules().why_no_actors; !why.empty())
    return refuse(what.store_name + std::string{why});
  const bool records = what.options.record_directory.has_value();
  if (!what.channels.empty() && (records || what.options.replay_directory))
    return refuse(fmt::format("--{}: {} has channels, whose parcels a replay does not have: leave "
                              "the option out",
                              records ? "record" : "replay", what.program));
  return {};
}

void take_channels(const graph& described, plan& made) {
  made.options.actors = 0;
  std::map<std::string, planned_channel::side> sides; // By node, without a port.
  for (const auto& each : described.actor_nodes()) {
    auto& first = made.options.actors;
    made.actor_nodes.push_back({each.name, each.what, first, each.path.store.has_value()});
    sides[each.name] = {{}, role::actor, first, each.what.count};
    first += each.what.count;
  }
  for (const auto& each : described.worker_nodes())
    sides[each.name] = {{}, role::worker, 0, each.what.count + each.what.backups};
  std::map<std::string, int> numbers;
  for (const auto& join : described.joins()) {
    planned_channel channel{.name = join.from.node + ">" + join.to.node,
                            .from = sides[join.from.node],
                            .to = sides[join.to.node],
                            .shape = join.shape,
                            .window = join.window,
                            .head = join.head,
                            .head_bytes = join.head_bytes};
    channel.from.port = join.from;
    channel.to.port = join.to;
    if (const int number = ++numbers[channel.name]; number > 1)
      channel.name += fmt::format(".{}", number);
    made.channels.push_back(std::move(channel));
  }
}

// -- the ends of a member --

namespace {

/// Returns the number of a member in a side; nullopt: it is not there.
std::optional<std::uint32_t> number_in(const planned_channel::side& side, const member_id& who) {
  if (who.role != side.as || who.index < side.first || who.index - side.first >= side.count)
    return std::nullopt;
  return who.index - side.first;
}

/// Returns the end of member `number` of one side. `sends`: it is the sending side.
planned_end end_of(const planned_channel& channel, bool sends, std::uint32_t number) {
  const auto& mine = sends ? channel.from : channel.to;
  const auto& other = sends ? channel.to : channel.from;
  planned_end made{{}, mine.port};
  made.end.channel = channel.name;
  made.end.sends = sends;
  made.end.head = channel.head;
  made.end.head_bytes = channel.head_bytes;
  made.end.window = channel.window;
  const auto add = [&](std::uint32_t peer) {
    made.end.peers.push_back({other.as, other.first + peer, {}});
  };
  switch (channel.shape) {
  case join_shape::spread:
    for (std::uint32_t peer = 0; peer < other.count; ++peer)
      add(peer);
    break;
  case join_shape::one_to_one: add(number); break;
  case join_shape::circle: add((number + (sends ? 1 : other.count - 1)) % other.count); break;
  }
  return made;
}

/// Finds the ports of a member. `find`: returns that of an end. `node`: of the member.
/// `why_no_pulls`: behind a port that pulls; empty: it may.
template <class Find>
result<member_ports> found_ports(const std::vector<planned_end>& ends, const std::string& node,
                                 const std::string& why_no_pulls,
                                 const std::vector<port_base*>& made, Find find) {
  const auto wrong = [](std::string text) {
    return failure{errc::invalid_argument, std::move(text)};
  };
  member_ports all;
  for (const auto& each : ends) {
    auto* const port = find(each.port);
    if (port == nullptr)
      return wrong(fmt::format("the objects that {} makes lack the port that the channel {} joins",
                               node, each.end.channel));
    if (std::ranges::find(all.joined, port) != all.joined.end())
      return wrong(fmt::format("the port {} of {} is joined twice: a port is joined once",
                               quote(port->name()), node));
    all.ends.push_back(each.end);
    all.ends.back().port = port->name();
    all.joined.push_back(port);
  }
  for (auto one = made.begin(); one != made.end(); ++one) {
    const auto name = quote((*one)->name());
    if (std::any_of(made.begin(), one, [&](auto* x) { return x->name() == (*one)->name(); }))
      return wrong(fmt::format("two ports of {} are named {}: rename one", node, name));
    if ((*one)->what() != port_base::kind::pulls) {
      if (std::ranges::find(all.joined, *one) == all.joined.end())
        return wrong(fmt::format("the port {} of {} is not joined: call graph::join(), or leave "
                                 "the port out",
                                 name, node));
      continue;
    }
    if (!why_no_pulls.empty())
      return wrong(fmt::format("the port {} of {} pulls, and {}", name, node, why_no_pulls));
    if (!all.pulls.empty())
      return wrong(fmt::format("two ports of {} pull, {} and {}: one ask() brings all tables, so "
                               "leave one out",
                               node, quote(all.pulls.front()->name()), name));
    all.pulls.push_back(*one);
  }
  return all;
}

} // namespace

std::vector<planned_end> channels_of(const plan& what, const member_id& who) {
  std::vector<planned_end> all;
  for (const auto& channel : what.channels) {
    if (const auto number = number_in(channel.from, who))
      all.push_back(end_of(channel, true, *number));
    if (const auto number = number_in(channel.to, who))
      all.push_back(end_of(channel, false, *number));
  }
  return all;
}

const planned_actors& node_of_actor(const plan& what, std::uint32_t index) {
  const auto next = std::ranges::upper_bound(what.actor_nodes, index, {}, &planned_actors::first);
  return *std::prev(next);
}

made_actor make_actor(const plan& what, std::uint32_t index, program_notes* notes) {
  const auto& node = node_of_actor(what, index);
  const auto number = index - node.first;
  const port_collector collector;
  made_actor made;
  const auto whose = fmt::format("{}:{}", node.name, number);
  {
    const user_call here{{"actor", {}, whose}};
    made.actor = node.what.make(number);
  }
  if (!made.actor)
    throw std::invalid_argument{node.name + " made no actor: its maker returned null"};
  const auto why_no_pulls = node.has_store
                              ? std::string{}
                              : fmt::format("{0} leads to no store: call {0}.into(...)", node.name);
  auto found = found_ports(channels_of(what, {role::actor, index, {}}), node.name, why_no_pulls,
                           collector.ports(), [&](const joined_port& port) -> port_base* {
                             return port.of_actor ? port.of_actor(*made.actor) : nullptr;
                           });
  if (!found)
    throw std::invalid_argument{found.error().text};
  made.ports = *std::move(found);
  // One more than the index, as the state 0 gives 0.
  const auto seed = splitmix64_of(what.job.seed + splitmix64_step * (std::uint64_t{index} + 1));
  made.actor->put(
    {.index = number, .count = node.what.count, .seed = seed, .notes = {notes, node.name}});
  return made;
}

result<member_ports> ports_of(const std::vector<planned_end>& ends, const std::string& node,
                              trainer& one, const std::vector<port_base*>& made) {
  return found_ports(ends, node, "trainers get values in gradient(): leave the port out", made,
                     [&](const joined_port& port) -> port_base* {
                       return port.of_trainer ? port.of_trainer(one) : nullptr;
                     });
}

} // namespace troupe
