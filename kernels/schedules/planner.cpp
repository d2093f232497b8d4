#include "kernels/schedules/planner.hpp"

#include "kernels/schedules/ring_search.hpp"
#include "kernels/schedules/strategies.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

namespace troupe::kernels {

namespace {

using generator = std::function<schedule(std::uint32_t pieces)>;
using groups_of_devices = std::vector<std::vector<std::uint32_t>>;

class planner {
public:
  planner(const routing& ways, double bytes, const planner_options& options)
      : ways_(ways), bytes_(bytes), options_(options) {}

  void add(std::string name, const generator& make) {
    strategy_plan best{std::move(name), {}, 0, 0, {}, {}};
    for (std::uint32_t pieces = 1; pieces <= 128; pieces *= 2) {
      auto plan = make(pieces);
      const double chunk_bytes = bytes_ / plan.chunks;
      if (pieces > 1
          && (chunk_bytes < options_.chunk_bytes_min || plan.steps.size() > options_.steps_max))
        break;
      auto cost = cost_of(plan, ways_, bytes_);
      if (pieces == 1)
        best.whole_seconds = cost.seconds;
      else if (cost.seconds > 1.05 * best.cost.seconds)
        break;
      if (pieces == 1 || cost.seconds < 0.999 * best.cost.seconds) {
        best.chunk_bytes = chunk_bytes;
        best.plan = std::move(plan);
        best.cost = std::move(cost);
      }
    }
    plans_.push_back(std::move(best));
  }

  void add_rings(const std::string& name, std::vector<ring_path> paths) {
    add(name, [&](std::uint32_t pieces) { return rings(paths, pieces); });
    for (std::size_t i = 0, count = paths.size(); i < count; ++i)
      paths.push_back(reversed(paths[i]));
    add(name + " both ways", [&](std::uint32_t pieces) { return rings(paths, pieces); });
  }

  void add_missing(std::string name, std::string why) {
    plans_.push_back({std::move(name), std::move(why), 0, 0, {}, {}});
  }

  /// Adds the generator that is fastest without pipelining.
  void add_fastest(const std::vector<std::pair<std::string, generator>>& all) {
    std::size_t best = 0;
    double best_seconds = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double seconds = cost_of(all[i].second(1), ways_, bytes_).seconds;
      if (i == 0 || seconds < best_seconds) {
        best = i;
        best_seconds = seconds;
      }
    }
    add(all[best].first, all[best].second);
  }

  std::vector<strategy_plan> take() { return std::move(plans_); }

private:
  const routing& ways_;
  double bytes_;
  const planner_options& options_;
  std::vector<strategy_plan> plans_;
};

/// Returns the devices of one group and their connections as a topology of its own.
routing inside_of(const routing& ways, const std::vector<std::uint32_t>& group) {
  topology net;
  for (std::uint32_t a = 0; a < group.size(); ++a)
    net.nodes.push_back({std::to_string(a), node_kind::device, 0});
  for (std::uint32_t a = 0; a < group.size(); ++a)
    for (std::uint32_t b = 0; b < a; ++b)
      net.links.push_back({b, a, ways.rate(group[b], group[a]), 0, true});
  return routing(std::move(net));
}

/// Returns a topology with only the links between devices, for two_rings().
routing direct_links_of(const routing& ways, const std::vector<std::uint32_t>& group) {
  topology net;
  const auto middle = static_cast<std::uint32_t>(group.size());
  for (std::uint32_t a = 0; a < group.size(); ++a)
    net.nodes.push_back({std::to_string(a), node_kind::device, 0});
  net.nodes.push_back({"others", node_kind::switch_node, 0});
  for (std::uint32_t a = 0; a < group.size(); ++a) {
    net.links.push_back({a, middle, 1, 0, true});
    for (std::uint32_t b = 0; b < a; ++b)
      if (const double rate = ways.direct_rate(group[b], group[a]); rate > 0)
        net.links.push_back({b, a, rate, 0, true});
  }
  return routing(std::move(net));
}

struct inner_part {
  std::string name;
  schedule scatter, gather;
};

std::vector<inner_part> inner_parts(const routing& ways, const std::vector<std::uint32_t>& group) {
  const auto size = static_cast<std::uint32_t>(group.size());
  const auto of_rings = [](std::string name, const std::vector<ring_path>& paths) {
    return inner_part{std::move(name), rings(paths, 1, collective::reduce_scatter),
                      rings(paths, 1, collective::all_gather)};
  };
  std::vector<inner_part> parts{
    {"block", block(size, 1, collective::reduce_scatter), block(size, 1, collective::all_gather)}};
  const auto ring = widest_ring(inside_of(ways, group));
  parts.push_back(of_rings("ring", {ring}));
  parts.push_back(of_rings("ring both ways", {ring, reversed(ring)}));
  if (const auto two = two_rings(direct_links_of(ways, group))) {
    const auto& [a, b] = *two;
    parts.push_back(of_rings("two rings both ways", {a, b, reversed(a), reversed(b)}));
  }
  return parts;
}

std::vector<std::pair<std::string, generator>> outer_parts(std::uint32_t groups) {
  return {{"block", [=](auto pieces) { return block(groups, pieces); }},
          {"ring", [=](auto pieces) { return rings(std::array{ring_in_order(groups)}, pieces); }},
          {"double tree", [=](auto pieces) { return double_tree(groups, pieces); }}};
}

void add_hierarchical(planner& plans, const routing& ways) {
  const auto groups = ways.devices_by_host();
  if (groups.size() < 2)
    return plans.add_missing("hierarchical", "all devices are on one host");
  if (groups.size() == ways.devices())
    return plans.add_missing("hierarchical", "each host has one device");
  const auto has_first_size = [&](const auto& x) { return x.size() == groups[0].size(); };
  const bool is_even = std::ranges::all_of(groups, has_first_size);
  std::vector<std::pair<std::string, generator>> choices;
  for (const auto& [outer_name, outer] : outer_parts(static_cast<std::uint32_t>(groups.size()))) {
    if (!is_even) {
      choices.emplace_back("hierarchical (leaders / " + outer_name + ")", [&groups, outer](auto n) {
        return hierarchical_by_leaders(groups, outer(n));
      });
      continue;
    }
    for (const auto& inner : inner_parts(ways, groups[0]))
      choices.emplace_back("hierarchical (" + inner.name + " / " + outer_name + ")",
                           [&groups, inner, outer](auto n) {
                             return hierarchical(groups, inner.scatter, outer(n), inner.gather);
                           });
  }
  plans.add_fastest(choices);
}

} // namespace

std::vector<strategy_plan> plan_all_reduce(const routing& ways, double bytes,
                                           const planner_options& options) {
  planner plans(ways, bytes, options);
  const auto devices = ways.devices();
  plans.add("central", [=](auto pieces) { return central(devices, 0, pieces); });
  if (ways.hosts() > 0)
    plans.add("host", [=](auto pieces) { return through_host(devices, pieces); });
  else
    plans.add_missing("host", "there is no host to stage in");
  plans.add("block", [=](auto pieces) { return block(devices, pieces); });
  plans.add_rings("ring", {widest_ring(ways)});
  if (const auto two = two_rings(ways)) {
    plans.add_rings("two rings", {two->first, two->second});
  } else {
    const std::string why = "links between devices do not form two rings";
    plans.add_missing("two rings", why);
    plans.add_missing("two rings both ways", why);
  }
  plans.add("double tree", [=](auto pieces) { return double_tree(devices, pieces); });
  add_hierarchical(plans, ways);
  return plans.take();
}

std::size_t choose(const std::vector<strategy_plan>& plans) {
  double fastest = 0;
  for (const auto& each : plans)
    if (each.missing.empty() && (fastest == 0 || each.cost.seconds < fastest))
      fastest = each.cost.seconds;
  std::size_t best = plans.size();
  for (std::size_t i = 0; i < plans.size(); ++i)
    if (plans[i].missing.empty() && plans[i].cost.seconds <= 1.01 * fastest
        && (best == plans.size() || plans[i].plan.steps.size() < plans[best].plan.steps.size()))
      best = i;
  return best;
}

} // namespace troupe::kernels
