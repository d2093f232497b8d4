#include "actors/graph/ranks/schedule_flow.hpp"

#include "tests/kernels/every_strategy.hpp"
#include "tests/kernels/schedules_interpreter.hpp"

#include "doctest/doctest.h"

#include <deque>
#include <map>
#include <random>
#include <vector>

namespace troupe::schedule_flow_test {

namespace {

using kernels::range_of_chunk;
using kernels::schedule;
using numbers = std::vector<std::vector<float>>;

/// A message that is read from its sender's buffer on arrival, as late as possible.
struct message_on_way {
  std::uint32_t number;
  kernels::schedule_step step;
};

/// Ranks with buffers of their own. Messages of a pair arrive in order; all else may be in any
/// order.
struct model_ranks {
  model_ranks(const schedule& what, numbers begun, std::uint32_t seed)
      : plan(what), buffers(std::move(begun)), random(seed) {
    for (std::uint32_t rank = 0; rank < plan.devices; ++rank)
      plans.push_back(plan_of_rank(plan, rank));
    for (const auto& each : plans)
      flows.emplace_back(each);
  }

  std::span<float> chunk(std::uint32_t rank, std::uint32_t number) {
    const auto range = range_of_chunk(buffers[rank].size(), plan.chunks, number);
    return std::span{buffers[rank]}.subspan(range.begin, range.size);
  }

  /// Makes one step; returns false if none is possible.
  bool do_something() {
    std::vector<std::uint32_t> order(plan.devices);
    for (std::uint32_t i = 0; i < order.size(); ++i)
      order[i] = i;
    std::ranges::shuffle(order, random);
    const bool deliver_first = random() % 2 == 0;
    for (const int phase : {0, 1})
      for (const auto rank : order)
        if ((phase == 0) == deliver_first ? deliver(rank) : step(rank))
          return true;
    return false;
  }

  bool step(std::uint32_t rank) {
    const auto now = flows[rank].next();
    if (!now)
      return false;
    if (now->step.from == rank) {
      on_way[{rank, now->step.to}].push_back({now->number, now->step});
      return true;
    }
    const auto values = inboxes[rank].extract(now->number).mapped();
    const auto to = chunk(rank, now->step.chunk);
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = now->step.kind == kernels::step_kind::copy ? values[i] : to[i] + values[i];
    return true;
  }

  bool deliver(std::uint32_t to) {
    for (std::uint32_t from = 0; from < plan.devices; ++from) {
      auto& queue = on_way[{from, to}];
      if (queue.empty())
        continue;
      const auto& [number, step] = queue.front();
      const auto values = chunk(from, step.chunk);
      REQUIRE(flows[to].arrived(number, from));
      inboxes[to][number] = {values.begin(), values.end()};
      flows[from].left(step.chunk);
      queue.pop_front();
      return true;
    }
    return false;
  }

  const schedule& plan;
  numbers buffers;
  std::mt19937 random;
  std::vector<flow_plan> plans;
  std::vector<schedule_flow> flows;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<message_on_way>> on_way;
  std::map<std::uint32_t, std::map<std::uint32_t, std::vector<float>>> inboxes;
};

} // namespace

TEST_CASE("ranks_that_send_messages_get_the_schedules_bytes_in_whatever_order_they_arrive") {
  std::mt19937 random{5};
  for (const std::uint32_t devices : {2u, 3u, 4u, 8u, 13u})
    for (const auto& [name, plan] : kernels::all_of(devices, 2)) {
      if (plan.staging > 0)
        continue;
      CAPTURE(name);
      CAPTURE(devices);
      numbers begun(devices, std::vector<float>(plan.chunks + 3));
      for (auto& buffer : begun)
        for (auto& x : buffer)
          x = static_cast<float>(random()) * 0x1p-20f;
      auto expected = begun;
      kernels::interpret(plan, expected);
      for (std::uint32_t order = 0; order < 3; ++order) {
        model_ranks ranks{plan, begun, order};
        while (ranks.do_something()) {
        }
        for (const auto& flow : ranks.flows)
          REQUIRE(flow.done());
        REQUIRE_EQ(ranks.buffers, expected);
      }
    }
}

TEST_CASE("a_chunk_is_not_overwritten_while_its_message_is_on_its_way") {
  constexpr auto copy = kernels::step_kind::copy;
  const schedule plan{kernels::collective::all_gather, 3, 0, 3, {{0, 1, 0, copy}, {2, 0, 0, copy}}};
  const auto own = plan_of_rank(plan, 0);
  schedule_flow flow{own};
  REQUIRE(flow.next());
  CHECK(flow.arrived(1, 2));
  CHECK_FALSE(flow.next());
  flow.left(0);
  CHECK(flow.next());
  CHECK(flow.done());
}

TEST_CASE("a_message_that_is_not_of_the_schedule_is_none") {
  const auto plan = kernels::block(3, 1);
  const auto own = plan_of_rank(plan, 0);
  schedule_flow flow{own};
  const auto taken = *std::ranges::find_if(own.steps, [](auto x) { return x.step.to == 0; });
  CHECK_FALSE(flow.arrived(1'000, 1));
  CHECK_FALSE(flow.arrived(taken.number, 3 - taken.step.from));
  CHECK(flow.arrived(taken.number, taken.step.from));
  CHECK_FALSE(flow.arrived(taken.number, taken.step.from));
  const auto sent = *std::ranges::find_if(own.steps, [](auto x) { return x.step.from == 0; });
  CHECK_FALSE(flow.arrived(sent.number, 0));
  CHECK_FALSE(schedule_flow{}.arrived(0, 0));
}

} // namespace troupe::schedule_flow_test
