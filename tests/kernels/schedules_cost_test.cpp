#include "kernels/schedules/cost.hpp"

#include "kernels/schedules/planner.hpp"
#include "kernels/schedules/presets.hpp"
#include "kernels/schedules/ring_search.hpp"
#include "kernels/schedules/strategies.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace troupe::kernels::schedules_cost_test {

namespace {

constexpr double bytes = 160e6;

schedule ring_of(std::uint32_t devices) {
  const std::array path{ring_in_order(devices)};
  return rings(path, 1);
}

/// Returns two pairs of devices, each on a switch, and one link between the switches.
topology dumbbell(bool full_duplex) {
  return {"dumbbell",
          "",
          {{"a", node_kind::device, 0},
           {"b", node_kind::device, 0},
           {"c", node_kind::device, 0},
           {"d", node_kind::device, 0},
           {"s", node_kind::switch_node, 0},
           {"t", node_kind::switch_node, 0}},
          {{0, 4, 10e9, 0, true},
           {1, 4, 10e9, 0, true},
           {2, 5, 10e9, 0, true},
           {3, 5, 4e9, 0, true},
           {4, 5, 12e9, 0, full_duplex}}};
}

const strategy_plan& find(const std::vector<strategy_plan>& plans, const std::string& name) {
  const auto at = std::ranges::find_if(
    plans, [&](const auto& x) { return x.name.substr(0, name.size()) == name; });
  REQUIRE(at != plans.end());
  return *at;
}

/// Returns the seconds of a strategy without pipelining: its bytes alone determine them.
double whole_seconds(const std::string& preset_name, const std::string& strategy) {
  const routing ways(*preset(preset_name));
  return find(plan_all_reduce(ways, bytes, {.chunk_bytes_min = bytes}), strategy).whole_seconds;
}

} // namespace

// The book divides bytes by rates. The model adds the latency of every step that waits for another,
// so each bound allows for it (5 us on PCIe, 2 us on NVLink).
TEST_CASE("the_figures_of_dive_into_deep_learning") {
  const auto is_within = [](double seconds, double book, double latencies) {
    return seconds >= book * (1 - 1e-6) && seconds <= (book + latencies) * (1 + 1e-6);
  };
  CHECK(is_within(whole_seconds("pcie-4gpu", "central"), 60e-3, 6 * 5e-6));
  CHECK(is_within(whole_seconds("pcie-4gpu", "host"), 80e-3, 8 * 5e-6));
  CHECK(is_within(whole_seconds("pcie-4gpu", "block"), 15e-3, 6 * 5e-6));
  // The book has 2 * 160 MB / (3 * 18 GB/s) = 5.93 ms, because it takes (n - 1) / n for 1.
  const double two_rings = whole_seconds("p3.16xlarge", "two rings");
  CHECK(is_within(two_rings, 2.0 * 7 / 8 * bytes / (3 * 18e9), 14 * 2 * 2e-6));
  CHECK(is_within(two_rings * 8 / 7, 2 * bytes / (3 * 18e9), 8.0 / 7 * 14 * 2 * 2e-6));
  CHECK(is_within(whole_seconds("p3.16xlarge", "two rings both ways"), two_rings / 2 - 28e-6,
                  2 * 14 * 2 * 2e-6));
}

TEST_CASE("a_ring_takes_as_long_on_64_devices_as_on_2_and_a_central_device_n_times") {
  for (std::uint32_t devices = 2; devices <= 64; devices *= 2) {
    CAPTURE(devices);
    const routing ways(star(devices, 16e9, 1e-6));
    const double once = bytes / 16e9;
    const double latency = 2e-6 * 2 * (devices - 1);
    CHECK_EQ(cost_of(ring_of(devices), ways, bytes).seconds,
             doctest::Approx(once * 2 * (devices - 1) / devices + latency).epsilon(1e-6));
    CHECK_EQ(cost_of(central(devices, 0, 1), ways, bytes).seconds,
             doctest::Approx(once * 2 * (devices - 1) + latency).epsilon(0.001));
  }
}

TEST_CASE("n_servers_answer_m_workers_in_a_time_of_m_over_n") {
  // In `block`, each of the n devices serves 1 / n of the buffer to all.
  for (const std::uint32_t workers : {4u, 8u, 16u, 32u}) {
    const routing ways(star(workers, 1e9, 0));
    const double one = cost_of(central(workers, 0, 1), ways, bytes).seconds;
    const double all = cost_of(block(workers, 1), ways, bytes).seconds;
    CHECK_EQ(one / all, doctest::Approx(workers).epsilon(1e-6));
  }
}

TEST_CASE("transfers_that_share_a_link_have_max_min_fair_rates") {
  // a -> c and b -> d share 12 GB/s; d takes only 4, so a -> c has 8.
  const schedule plan{
    collective::all_reduce, 4, 0, 1, {{0, 2, 0, step_kind::copy}, {1, 3, 0, step_kind::copy}}};
  const auto full = cost_of(plan, routing(dumbbell(true)), 8e9);
  CHECK_EQ(full.steps[0].end, doctest::Approx(1.0));
  CHECK_EQ(full.steps[1].end, doctest::Approx(2.0));
  CHECK_EQ(full.busiest_seconds, doctest::Approx(2.0)); // t -> d
}

TEST_CASE("a_half_duplex_link_is_shared_by_both_directions") {
  const schedule plan{
    collective::all_reduce, 4, 0, 2, {{0, 2, 0, step_kind::copy}, {2, 0, 1, step_kind::copy}}};
  CHECK_EQ(cost_of(plan, routing(dumbbell(true)), 20e9).seconds, doctest::Approx(1.0));
  CHECK_EQ(cost_of(plan, routing(dumbbell(false)), 20e9).seconds, doctest::Approx(20.0 / 12));
}

TEST_CASE("a_limit_of_a_node_is_shared_by_all_that_passes_through") {
  auto net = dumbbell(true);
  net.nodes[4].bytes_per_second = 5e9;
  const schedule plan{
    collective::all_reduce, 4, 0, 1, {{0, 2, 0, step_kind::copy}, {1, 3, 0, step_kind::copy}}};
  const routing ways(net);
  const auto cost = cost_of(plan, ways, 5e9);
  CHECK_EQ(cost.seconds, doctest::Approx(2.0));
  CHECK_EQ(ways.resource_name(cost.busiest), "s");
  CHECK_EQ(cost.busiest_bytes, doctest::Approx(10e9));
}

TEST_CASE("a_step_waits_for_what_it_needs_and_for_its_pair") {
  const routing ways(star(3, 1e9, 0.25));
  // 0 -> 1 sends twice, the second chunk behind the first; 1 -> 2 passes on the first chunk.
  const schedule plan{
    collective::all_reduce,
    3,
    0,
    2,
    {{0, 1, 0, step_kind::copy}, {0, 1, 1, step_kind::copy}, {1, 2, 0, step_kind::copy}}};
  const auto cost = cost_of(plan, ways, 2e9);
  const std::vector<double> ends{1.5, 3.0, 3.0};
  for (std::size_t i = 0; i < ends.size(); ++i)
    CHECK_EQ(cost.steps[i].end, doctest::Approx(ends[i]));
  CHECK_EQ(cost.steps[2].begin, doctest::Approx(1.5));
}

TEST_CASE("every_plan_of_every_preset_is_correct_and_no_faster_than_its_busiest_link") {
  for (const auto name : preset_names()) {
    const routing ways(*preset(name));
    for (const double size : {1e3, 1e6, bytes})
      for (const auto& each : plan_all_reduce(ways, size)) {
        CAPTURE(std::string(name));
        CAPTURE(each.name);
        if (!each.missing.empty())
          continue;
        CHECK_EQ(fault_of(each.plan).value_or("none"), "none");
        CHECK(each.cost.seconds >= each.cost.busiest_seconds * (1 - 1e-9));
        CHECK(each.cost.seconds <= each.whole_seconds);
        double sent = 0;
        for (const auto link : each.cost.link_bytes)
          sent += link;
        CHECK(sent > 0);
      }
  }
}

TEST_CASE("rings_cross_no_link_twice_on_any_preset") {
  for (const auto name : preset_names()) {
    CAPTURE(std::string(name));
    const routing ways(*preset(name));
    const std::array path{widest_ring(ways)};
    CHECK_EQ(fault_of(rings(path, 1), ways.view()).value_or("none"), "none");
  }
}

TEST_CASE("the_cube_mesh_of_p3_16xlarge_is_a_ring_of_double_links_and_one_of_single_links") {
  const routing ways(*preset("p3.16xlarge"));
  const auto found = two_rings(ways);
  REQUIRE(found.has_value());
  CHECK_EQ(found->first.share, 2);
  CHECK_EQ(found->second.share, 1);
  for (const auto& [ring, rate] : {std::pair{found->first, 36e9}, std::pair{found->second, 18e9}})
    for (std::size_t i = 0; i < 8; ++i)
      CHECK_EQ(ways.direct_rate(ring.order[i], ring.order[(i + 1) % 8]), rate);
  const std::array both{found->first, found->second};
  CHECK_EQ(fault_of(rings(both, 1), ways.view()).value_or("none"), "none");
}

TEST_CASE("there_are_not_two_rings_where_links_form_one") {
  topology circle{"circle", "", {}, {}};
  for (std::uint32_t i = 0; i < 5; ++i) {
    circle.nodes.push_back({std::to_string(i), node_kind::device, 0});
    circle.links.push_back({i, (i + 1) % 5, 1e9, 0, true});
  }
  circle.nodes.push_back({"host", node_kind::host, 0});
  for (std::uint32_t i = 0; i < 5; ++i)
    circle.links.push_back({i, 5, 1e8, 0, true});
  const routing ways(circle);
  CHECK_FALSE(two_rings(ways).has_value());
  const auto ring = widest_ring(ways);
  for (std::size_t i = 0; i < 5; ++i)
    CHECK_EQ(ways.rate(ring.order[i], ring.order[(i + 1) % 5]), 1e9);
}

TEST_CASE("the_planner_stays_inside_hosts_where_the_network_is_slow") {
  const routing ways(*preset("2x8-100gbe"));
  const auto plans = plan_all_reduce(ways, bytes);
  CHECK_EQ(plans[choose(plans)].name.substr(0, 12), "hierarchical");
  const auto& ring = find(plans, "ring");
  CHECK_EQ(ring.cost.busiest_bytes,
           doctest::Approx(2.0 * 15 / 16 * bytes)); // Each byte leaves each host once.
}

TEST_CASE("the_planner_takes_few_steps_for_few_bytes_and_large_pieces_for_many") {
  const routing ways(star(16, 16e9, 50e-6));
  const auto few = plan_all_reduce(ways, 1e3);
  const auto many = plan_all_reduce(ways, 1e9);
  CHECK(few[choose(few)].plan.steps.size() < many[choose(many)].plan.steps.size());
  CHECK_EQ(find(few, "central").plan.chunks, 1);
  CHECK(find(many, "central").plan.chunks > 1);
  CHECK(find(many, "central").cost.seconds < 0.6 * find(many, "central").whole_seconds);
}

// Beside 1 s of latency, the 60 ps of a byte are hardly more than rounding.
TEST_CASE("a_transfer_too_short_to_be_told_apart_from_what_has_passed_ends") {
  const topology_node s{"s", node_kind::switch_node, 0};
  for (const double latency : {1.0, 3.0, 1e3}) {
    const routing ways(
      {"",
       "",
       {{"a"}, {"b"}, {"c"}, s},
       {{0, 3, 16e9, 1, true}, {1, 3, 16e9, 1, true}, {2, 3, 16e9, latency, true}}});
    for (const double few : {4.0, 1e-9, 1e-300})
      for (const auto& each : plan_all_reduce(ways, few))
        if (each.missing.empty())
          CHECK_GE(each.cost.seconds, 2 * (1 + latency) * (1 - 1e-9));
  }
}

TEST_CASE("a_topology_that_cannot_be_used_is_refused_with_its_reason") {
  struct row {
    std::string reason;
    std::vector<topology_node> nodes;
    std::vector<topology_link> links;
  };
  const topology_node a{"a", node_kind::device, 0}, b{"b", node_kind::device, 0};
  const topology_node s{"s", node_kind::switch_node, 0}, c{"c", node_kind::device, 0};
  const std::vector<row> rows{
    {"there are fewer than two devices to add up", {a, s}, {{0, 1, 1, 0, true}}},
    {"two nodes are called 'a'; give each its own name", {a, a}, {{0, 1, 1, 0, true}}},
    {"a node has no name", {a, {"", node_kind::device, 0}}, {{0, 1, 1, 0, true}}},
    {"node 'b': its bandwidth must be above 0; leave it out for no limit",
     {a, {"b", node_kind::host, -1}},
     {{0, 1, 1, 0, true}}},
    {"link between 'a' and 'b': its bandwidth must be above 0", {a, b}, {{0, 1, 0, 0, true}}},
    {"link between 'a' and 'b': its bandwidth must be above 0", {a, b}, {{0, 1, -3, 0, true}}},
    {"link between 'a' and 'b': its latency must be 0 or more", {a, b}, {{0, 1, 1, -1, true}}},
    {"link between 'a' and 'b': its latency must be at most 1000 seconds",
     {a, b},
     {{0, 1, 1, 1e200, true}}},
    {"link between 'a' and 'b': its bandwidth must be from 1 to 10^18 bytes a second",
     {a, b},
     {{0, 1, 1e300, 0, true}}},
    {"link between 'a' and 'b': its bandwidth must be from 1 to 10^18 bytes a second",
     {a, b},
     {{0, 1, 1e-300, 0, true}}},
    {"node 'b': its bandwidth must be from 1 to 10^18 bytes a second; leave it out for no limit",
     {a, {"b", node_kind::host, 1e-300}},
     {{0, 1, 1, 0, true}}},
    {"there are 1025 nodes; plans are made for at most 1024",
     std::vector<topology_node>(1025, a),
     {}},
    {"link between 'a' and 'a': it connects a node to itself", {a, b}, {{0, 0, 1, 0, true}}},
    {"link between 'b' and 'a' comes twice; give one with the sum of their bandwidths",
     {a, b},
     {{0, 1, 1, 0, true}, {1, 0, 1, 0, true}}},
    {"a link names a node that does not exist", {a, b}, {{0, 2, 1, 0, true}}},
    {"'c' is not connected to 'a' (over hosts and switches; devices pass nothing on); add a link",
     {a, b, c},
     {{0, 1, 1, 0, true}, {1, 2, 1, 0, true}}},
  };
  for (const auto& each : rows)
    CHECK_EQ(problem_of({"", "", each.nodes, each.links}).value_or("none"), each.reason);
  CHECK_EQ(problem_of({"", "", {a, b}, {{0, 1, 1, 0, true}}}).value_or("none"), "none");
}

} // namespace troupe::kernels::schedules_cost_test
