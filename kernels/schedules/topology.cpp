#include "kernels/schedules/topology.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

namespace troupe::kernels {

namespace {

constexpr auto unreachable = std::numeric_limits<std::uint32_t>::max();
constexpr double unlimited = std::numeric_limits<double>::infinity();

// Limits of planning: above real hardware, and small enough that times can be added up and planning
// ends.
constexpr double rate_min = 1, rate_max = 1e18; // Bytes per second.
constexpr double latency_max = 1e3;             // Seconds.
constexpr std::size_t nodes_max = 1024;

std::optional<std::string> problem_of_rate(double value) {
  if (!(value > 0))
    return "its bandwidth must be above 0";
  if (value < rate_min || value > rate_max)
    return "its bandwidth must be from 1 to 10^18 bytes a second";
  return {};
}

std::optional<std::string> problem_of_nodes(const topology& net) {
  std::set<std::string> names;
  for (const auto& node : net.nodes) {
    if (node.name.empty())
      return "a node has no name";
    if (!names.insert(node.name).second)
      return "two nodes are called '" + node.name + "'; give each its own name";
    if (node.bytes_per_second == 0)
      continue;
    if (const auto problem = problem_of_rate(node.bytes_per_second))
      return "node '" + node.name + "': " + *problem + "; leave it out for no limit";
  }
  return {};
}

std::string name_of(const topology& net, const topology_link& link) {
  return "link between '" + net.nodes[link.a].name + "' and '" + net.nodes[link.b].name + "'";
}

std::optional<std::string> problem_of_link(const topology& net, const topology_link& link) {
  if (link.a >= net.nodes.size() || link.b >= net.nodes.size())
    return "a link names a node that does not exist";
  const auto name = name_of(net, link);
  if (link.a == link.b)
    return name + ": it connects a node to itself";
  if (const auto problem = problem_of_rate(link.bytes_per_second))
    return name + ": " + *problem;
  if (!(link.latency_seconds >= 0))
    return name + ": its latency must be 0 or more";
  if (link.latency_seconds > latency_max)
    return name + ": its latency must be at most 1000 seconds";
  return {};
}

/// Returns the nodes that a device reaches; other devices forward no traffic.
std::vector<bool> reached_from(const topology& net, std::uint32_t start) {
  std::vector<bool> reached(net.nodes.size());
  std::vector<std::uint32_t> todo{start};
  reached[start] = true;
  while (!todo.empty()) {
    const auto node = todo.back();
    todo.pop_back();
    if (node != start && net.nodes[node].kind == node_kind::device)
      continue;
    for (const auto& link : net.links)
      for (const auto& [near, far] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}})
        if (near == node && !reached[far]) {
          reached[far] = true;
          todo.push_back(far);
        }
  }
  return reached;
}

} // namespace

std::optional<std::string> problem_of(const topology& net) {
  if (net.nodes.size() > nodes_max)
    return "there are " + std::to_string(net.nodes.size()) + " nodes; plans are made for at most "
           + std::to_string(nodes_max);
  if (auto problem = problem_of_nodes(net))
    return problem;
  std::set<std::pair<std::uint32_t, std::uint32_t>> linked;
  for (const auto& link : net.links) {
    if (auto problem = problem_of_link(net, link))
      return problem;
    if (!linked.insert(std::minmax(link.a, link.b)).second)
      return name_of(net, link) + " comes twice; give one with the sum of their bandwidths";
  }
  if (std::ranges::count(net.nodes, node_kind::device, &topology_node::kind) < 2)
    return "there are fewer than two devices to add up";
  for (std::uint32_t from = 0; from < net.nodes.size(); ++from) {
    if (net.nodes[from].kind != node_kind::device)
      continue;
    const auto reached = reached_from(net, from);
    for (std::uint32_t to = 0; to < net.nodes.size(); ++to)
      if (net.nodes[to].kind != node_kind::switch_node && !reached[to])
        return "'" + net.nodes[to].name + "' is not connected to '" + net.nodes[from].name
               + "' (over hosts and switches; devices pass nothing on); add a link";
  }
  return {};
}

routing::routing(topology net) : net_(std::move(net)) {
  assert(!problem_of(net_));
  for (const auto kind : {node_kind::device, node_kind::host}) {
    for (std::uint32_t node = 0; node < net_.nodes.size(); ++node)
      if (net_.nodes[node].kind == kind)
        places_.push_back(node);
    if (kind == node_kind::device)
      devices_ = static_cast<std::uint32_t>(places_.size());
  }
  hops_.resize(net_.nodes.size());
  for (std::uint32_t i = 0; i < net_.links.size(); ++i) {
    const auto& link = net_.links[i];
    hops_[link.a].push_back({2 * i, link.b});
    hops_[link.b].push_back({2 * i + 1, link.a});
    rates_.insert(rates_.end(), 2, link.bytes_per_second);
  }
  for (const auto& node : net_.nodes)
    rates_.push_back(node.bytes_per_second > 0 ? node.bytes_per_second : unlimited);
  ways_.resize(places_.size() * places_.size());
  for (std::uint32_t to = 0; to < places_.size(); ++to)
    add_ways_to(to);
}

std::vector<std::uint32_t> routing::hops_to(std::uint32_t node) const {
  std::vector<std::uint32_t> hops(net_.nodes.size(), unreachable);
  std::vector<std::uint32_t> reached{node};
  hops[node] = 0;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const auto at = reached[i];
    if (at != node && net_.nodes[at].kind == node_kind::device)
      continue; // It forwards no traffic.
    for (const auto& [link, to] : hops_[at])
      if (hops[to] == unreachable) {
        hops[to] = hops[at] + 1;
        reached.push_back(to);
      }
  }
  return hops;
}

std::vector<double> routing::widths_to(std::uint32_t node,
                                       const std::vector<std::uint32_t>& hops) const {
  std::vector<std::uint32_t> nearest_first(net_.nodes.size());
  std::iota(nearest_first.begin(), nearest_first.end(), 0u);
  std::ranges::stable_sort(nearest_first, {}, [&](auto i) { return hops[i]; });
  std::vector<double> widths(net_.nodes.size());
  widths[node] = unlimited;
  for (const auto at : nearest_first)
    for (const auto& [link, to] : hops_[at])
      if (hops[at] != unreachable && hops[to] + 1 == hops[at]
          && (to == node || net_.nodes[to].kind != node_kind::device))
        widths[at] = std::max(widths[at], std::min(widths[to], link_rate(link)));
  return widths;
}

void routing::add_ways_to(std::uint32_t place) {
  const auto target = places_[place];
  const auto hops = hops_to(target);
  const auto widths = widths_to(target, hops);
  for (std::uint32_t from = 0; from < places_.size(); ++from) {
    way& made = ways_[std::size_t{from} * places_.size() + place];
    const auto add_node = [&](std::uint32_t node) {
      if (net_.nodes[node].bytes_per_second > 0)
        made.resources.push_back(directed_links() + node);
    };
    for (auto at = places_[from]; at != target;) {
      add_node(at);
      std::vector<hop> choices;
      for (const auto& next : hops_[at])
        if (hops[next.to] + 1 == hops[at]
            && (next.to == target || net_.nodes[next.to].kind != node_kind::device)
            && std::min(widths[next.to], link_rate(next.link)) >= widths[at])
          choices.push_back(next);
      const auto chosen = choices[(place >> (made.links.size() / 2)) % choices.size()];
      made.links.push_back(chosen.link);
      made.resources.push_back(net_.links[chosen.link / 2].full_duplex ? chosen.link
                                                                       : chosen.link / 2 * 2);
      at = chosen.to;
    }
    add_node(target);
  }
}

std::span<const std::uint32_t> routing::links(std::uint32_t from, std::uint32_t to) const {
  return at(from, to).links;
}

std::span<const std::uint32_t> routing::resources(std::uint32_t from, std::uint32_t to) const {
  return at(from, to).resources;
}

std::string routing::link_name(std::uint32_t link) const {
  const auto& both = net_.links[link / 2];
  const auto& [from, to] = link % 2 == 0 ? std::pair{both.a, both.b} : std::pair{both.b, both.a};
  return net_.nodes[from].name + " -> " + net_.nodes[to].name;
}

std::string routing::resource_name(std::uint32_t resource) const {
  return resource < directed_links() ? link_name(resource)
                                     : net_.nodes[resource - directed_links()].name;
}

double routing::latency_seconds(std::uint32_t from, std::uint32_t to) const {
  double sum = 0;
  for (const auto link : links(from, to))
    sum += net_.links[link / 2].latency_seconds;
  return sum;
}

double routing::rate(std::uint32_t from, std::uint32_t to) const {
  double least = unlimited;
  for (const auto resource : resources(from, to))
    least = std::min(least, rates_[resource]);
  return least;
}

double routing::direct_rate(std::uint32_t from, std::uint32_t to) const {
  const auto crossed = links(from, to);
  return crossed.size() == 1 ? link_rate(crossed[0]) : 0;
}

std::vector<std::vector<std::uint32_t>> routing::devices_by_host() const {
  std::vector<std::vector<std::uint32_t>> groups(std::max(hosts(), 1u));
  for (std::uint32_t device = 0; device < devices_; ++device) {
    std::uint32_t nearest = 0;
    for (std::uint32_t host = 1; host < hosts(); ++host)
      if (links(device, devices_ + host).size() < links(device, devices_ + nearest).size())
        nearest = host;
    groups[nearest].push_back(device);
  }
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  return groups;
}

link_view routing::view() const {
  return {[this](std::uint32_t from, std::uint32_t to) { return links(from, to); },
          [this](std::uint32_t link) { return link_name(link); }};
}

} // namespace troupe::kernels
