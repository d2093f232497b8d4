#include "kernels/schedules/verify.hpp"

#include "kernels/schedules/strategies.hpp"

#include "doctest/doctest.h"

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace troupe::kernels::schedules_verify_test {

namespace {

schedule ring_of(std::uint32_t devices, collective goal = collective::all_reduce) {
  const std::array path{ring_in_order(devices)};
  return rings(path, 1, goal);
}

struct planted_fault {
  std::string name;
  schedule plan; ///< Correct until a test damages it.
  std::function<void(schedule&)> damage;
  std::string reason;
};

void drop(schedule& plan, std::size_t i) {
  plan.steps.erase(plan.steps.begin() + static_cast<std::ptrdiff_t>(i));
}

void repeat(schedule& plan, std::size_t i) {
  const auto step = plan.steps[i];
  plan.steps.insert(plan.steps.begin() + static_cast<std::ptrdiff_t>(i), step);
}

const std::vector<planted_fault>& planted_faults() {
  static const std::vector<planted_fault> all{
    {"no devices", central(4, 0, 1), [](schedule& x) { x.devices = 0; }, "there are no devices"},
    {"no chunks", central(4, 0, 1), [](schedule& x) { x.chunks = 0; }, "there are no chunks"},
    {"chunks that cannot be owned equally", block(4, 1, collective::reduce_scatter),
     [](schedule& x) { x.chunks = 5; }, "5 chunks cannot be owned by 4 devices equally"},
    {"a broadcast from nowhere", broadcast(4, 0, 1), [](schedule& x) { x.root = 4; },
     "the root is device 4 of 4"},
    {"a broadcast from another device", broadcast(4, 0, 1), [](schedule& x) { x.root = 1; },
     "step 0 reads chunk 0 of device 0 before it is written"},
    {"an unknown receiver", central(4, 0, 1), [](schedule& x) { x.steps[4].to = 4; },
     "step 4 names place 4; there are 4 devices and 0 staging places"},
    {"an unknown sender", central(4, 0, 1), [](schedule& x) { x.steps[2].from = 9; },
     "step 2 names place 9; there are 4 devices and 0 staging places"},
    {"an unknown chunk", block(4, 1), [](schedule& x) { x.steps[1].chunk = 4; },
     "step 1 names chunk 4; there are 4"},
    {"a device that sends to itself", block(4, 1), [](schedule& x) { x.steps[0].to = 0; },
     "step 0 sends from device 0 to itself"},
    {"a host that sends before it has anything", through_host(2, 1),
     [](schedule& x) { std::swap(x.steps[0], x.steps[2]); },
     "step 0 reads chunk 0 of staging place 0 before it is written"},
    {"a host that adds to nothing", through_host(2, 1),
     [](schedule& x) { x.steps[0].kind = step_kind::reduce; },
     "step 0 adds to chunk 0 of staging place 0 before it is written"},
    {"an all-gather that passes on what it does not have yet", ring_of(4, collective::all_gather),
     [](schedule& x) { std::swap(x.steps[0], x.steps[4]); },
     "step 0 reads chunk 0 of device 1 before it is written"},
    {"an all-gather that adds", ring_of(4, collective::all_gather),
     [](schedule& x) { x.steps[0].kind = step_kind::reduce; },
     "step 0 adds to chunk 0 of device 1 before it is written"},
    {"a gradient added twice", central(4, 0, 1), [](schedule& x) { repeat(x, 1); },
     "step 2 adds the contribution of device 2 to chunk 0 of device 0 a second time"},
    {"a sum added to a part of itself", central(4, 0, 1),
     [](schedule& x) { x.steps[3].kind = step_kind::reduce; },
     "step 3 adds the contribution of device 1 to chunk 0 of device 1 a second time"},
    {"a partial sum that goes round once too often", ring_of(3, collective::reduce_scatter),
     [](schedule& x) {
       x.steps.push_back({0, 1, 0, step_kind::reduce});
     },
     "step 6 adds the contribution of device 1 to chunk 0 of device 1 a second time"},
    {"a gradient left out", central(4, 0, 1), [](schedule& x) { drop(x, 1); },
     "device 0 ends without the contribution of device 2 to chunk 0"},
    {"a gradient overwritten", central(4, 0, 1),
     [](schedule& x) { x.steps[1].kind = step_kind::copy; },
     "device 0 ends without the contribution of device 0 to chunk 0"},
    {"a device that gets no sum", central(4, 0, 1), [](schedule& x) { drop(x, 5); },
     "device 3 ends without the contribution of device 0 to chunk 0"},
    {"a sum sent before it is whole", central(4, 0, 1),
     [](schedule& x) { std::swap(x.steps[2], x.steps[3]); },
     "device 1 ends without the contribution of device 3 to chunk 0"},
    {"one chunk reduced into another one's owner", block(4, 1),
     [](schedule& x) { x.steps[0].chunk = 2; },
     "step 4 adds the contribution of device 0 to chunk 2 of device 2 a second time"},
    {"a whole sum sent twice", block(4, 1), [](schedule& x) { repeat(x, 12); },
     "step 13 sends chunk 0 over the link from place 0 to place 1 with the same contents as step "
     "12"},
    {"a round of a ring too many", ring_of(4),
     [](schedule& x) {
       const auto first = x.steps[12];
       x.steps.push_back(first);
     },
     "step 24 sends chunk 0 over the link from place 0 to place 1 with the same contents as step "
     "12"},
    {"a tree whose children are mixed up", double_tree(6, 1),
     [](schedule& x) { std::swap(x.steps[0].from, x.steps[0].to); },
     "ends without the contribution of"},
    {"leaders that forget a member",
     hierarchical_by_leaders(std::vector<std::vector<std::uint32_t>>{{0, 1}, {2, 3}}, ring_of(2)),
     [](schedule& x) { drop(x, 0); }, "device 0 ends without the contribution of device 1"},
  };
  return all;
}

} // namespace

TEST_CASE("every_planted_fault_is_refused_with_its_reason") {
  CHECK(planted_faults().size() >= 20);
  for (const auto& fault : planted_faults()) {
    CAPTURE(fault.name);
    CHECK_EQ(fault_of(fault.plan).value_or("none"), "none");
    auto damaged = fault.plan;
    fault.damage(damaged);
    const auto found = fault_of(damaged).value_or("none");
    CAPTURE(found);
    CHECK(found.find(fault.reason) != std::string::npos);
  }
}

TEST_CASE("every_schedule_from_which_a_step_is_missing_is_refused") {
  for (const auto& whole : {central(5, 1, 2), through_host(4, 1), block(5, 1), ring_of(6),
                            double_tree(7, 1), block(3, 2, collective::reduce_scatter)})
    for (std::size_t i = 0; i < whole.steps.size(); ++i) {
      auto damaged = whole;
      drop(damaged, i);
      CAPTURE(i);
      CHECK(fault_of(damaged).has_value());
    }
}

TEST_CASE("each_link_of_a_path_counts") {
  // Four devices are on a switch. Link d goes from device d to it, link 4 + d from it to device d.
  std::array<std::uint32_t, 2> path{};
  const link_view star{[&](std::uint32_t from, std::uint32_t to) {
                         path = {from, 4 + to};
                         return std::span<const std::uint32_t>(path);
                       },
                       [](std::uint32_t link) { return "link " + std::to_string(link); }};
  CHECK_EQ(fault_of(ring_of(4), star).value_or("none"), "none");
  CHECK_EQ(fault_of(block(4, 1), star).value_or("none"),
           "step 16 sends chunk 0 over link 0 with the same contents as step 12");
  CHECK_EQ(fault_of(central(4, 0, 1), star).value_or("none"),
           "step 4 sends chunk 0 over link 0 with the same contents as step 3");
}

} // namespace troupe::kernels::schedules_verify_test
