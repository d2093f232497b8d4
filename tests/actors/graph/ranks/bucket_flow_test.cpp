#include "actors/graph/ranks/bucket_flow.hpp"

#include "kernels/schedules/strategies.hpp"
#include "tests/kernels/schedules_interpreter.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace troupe::bucket_flow_test {

namespace {

using numbers = std::vector<std::vector<float>>; // Indexed by rank.

constexpr std::size_t no_limit = ~std::size_t{0};

struct message_on_way {
  std::uint32_t part;
  flow_plan::own_step what;
};

/// Ranks that add up the same parts; each part becomes ready at a random time.
struct model_ranks {
  model_ranks(const std::vector<kernels::schedule>& what, std::vector<numbers> begun,
              std::size_t leaving_max, std::uint32_t seed)
      : plans(what), buffers(std::move(begun)), random(seed), ranks(what[0].devices), own(ranks),
        inboxes(ranks) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      for (const auto& plan : plans)
        own[rank].push_back(plan_of_rank(plan, rank));
      std::vector<sum_part> parts;
      for (std::uint32_t part = 0; part < plans.size(); ++part) {
        parts.push_back({&own[rank][part], buffers[part][rank]});
        unready.push_back({rank, part});
      }
      flows.emplace_back(parts, leaving_max);
    }
  }

  std::span<float> chunk(std::uint32_t part, std::uint32_t rank, std::uint32_t number) {
    auto& buffer = buffers[part][rank];
    const auto range = kernels::range_of_chunk(buffer.size(), plans[part].chunks, number);
    return std::span{buffer}.subspan(range.begin, range.size);
  }

  /// Makes one step; returns false if none is possible.
  bool do_something() {
    if (!unready.empty() && random() % 8 == 0)
      return make_ready();
    std::vector<std::uint32_t> order(ranks);
    for (std::uint32_t i = 0; i < ranks; ++i)
      order[i] = i;
    std::ranges::shuffle(order, random);
    const bool deliver_first = random() % 2 == 0;
    for (const bool first : {true, false})
      for (const auto rank : order)
        if (first == deliver_first ? deliver(rank) : step(rank))
          return true;
    return !unready.empty() && make_ready();
  }

  bool make_ready() {
    const auto which = unready.begin() + random() % unready.size();
    flows[which->first].ready(which->second);
    unready.erase(which);
    return true;
  }

  bool step(std::uint32_t rank) {
    const auto now = flows[rank].next();
    if (!now)
      return false;
    const auto& [number, step] = now->what;
    if (step.from == rank) {
      on_way[{rank, step.to}].push_back({now->part, now->what});
      return true;
    }
    const auto values = inboxes[rank].extract({now->part, number}).mapped();
    const auto to = chunk(now->part, rank, step.chunk);
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = step.kind == kernels::step_kind::copy ? values[i] : to[i] + values[i];
    return true;
  }

  bool deliver(std::uint32_t to) {
    for (std::uint32_t from = 0; from < ranks; ++from) {
      auto& queue = on_way[{from, to}];
      if (queue.empty())
        continue;
      const auto [part, what] = queue.front();
      queue.pop_front();
      const auto values = chunk(part, from, what.step.chunk);
      REQUIRE(flows[to].arrived(part, what.number, from));
      inboxes[to][{part, what.number}] = {values.begin(), values.end()};
      flows[from].left(part, what.step.chunk);
      return true;
    }
    return false;
  }

  const std::vector<kernels::schedule>& plans;
  std::vector<numbers> buffers; ///< Indexed by part.
  std::mt19937 random;
  std::uint32_t ranks;
  std::vector<std::vector<flow_plan>> own; ///< Indexed by rank, then part.
  std::vector<bucket_flow> flows;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> unready; ///< Pairs of rank and part.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<message_on_way>> on_way;
  std::vector<std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<float>>> inboxes;
};

/// Rank 0 of two sends all of its numbers to rank 1, in two chunks.
const kernels::schedule one_way{
  kernels::collective::all_gather,
  2,
  0,
  2,
  {{0, 1, 0, kernels::step_kind::copy}, {0, 1, 1, kernels::step_kind::copy}}};

/// Rank 0's flow of three parts with that schedule, 10 numbers each.
struct three_parts {
  explicit three_parts(std::size_t leaving_max) {
    for (auto& part : buffers)
      parts.push_back({&plan, part});
    flow = bucket_flow{parts, leaving_max};
  }

  /// Returns the part of the next chunk that may leave; -1 if none may.
  int next() {
    const auto now = flow.next();
    return now ? static_cast<int>(now->part) : -1;
  }

  flow_plan plan = plan_of_rank(one_way, 0);
  std::array<std::vector<float>, 3> buffers{std::vector<float>(10), std::vector<float>(10),
                                            std::vector<float>(10)};
  std::vector<sum_part> parts;
  bucket_flow flow;
};

} // namespace

TEST_CASE("parts_get_their_schedules_bytes_whenever_each_becomes_ready_on_whatever_rank") {
  std::mt19937 random{7};
  for (const std::uint32_t ranks : {1u, 2u, 3u, 5u}) {
    const std::array ring{kernels::ring_in_order(ranks)};
    const std::vector plans{kernels::block(ranks, 1), kernels::rings(ring, 3),
                            kernels::central(ranks, ranks - 1, 2), kernels::rings(ring, 1)};
    std::vector<numbers> begun;
    for (const std::size_t count : {40u, 1u, 0u, 97u}) {
      begun.emplace_back(ranks, std::vector<float>(count));
      for (auto& buffer : begun.back())
        for (auto& x : buffer)
          x = static_cast<float>(random()) * 0x1p-20f;
    }
    auto expected = begun;
    for (std::size_t part = 0; part < plans.size(); ++part)
      kernels::interpret(plans[part], expected[part]);
    for (const std::size_t leaving_max : {std::size_t{1}, std::size_t{30}, no_limit})
      for (std::uint32_t seed = 0; seed < 20; ++seed) {
        CAPTURE(ranks);
        CAPTURE(leaving_max);
        CAPTURE(seed);
        model_ranks model{plans, begun, leaving_max, seed};
        while (model.do_something()) {
        }
        for (const auto& flow : model.flows)
          REQUIRE(flow.done());
        REQUIRE_EQ(model.buffers, expected);
      }
  }
}

TEST_CASE("of_what_is_ready_the_most_urgent_part_leaves_first") {
  three_parts own{no_limit};
  CHECK_EQ(own.next(), -1);
  own.flow.ready(2);
  CHECK_EQ(own.next(), 2);
  own.flow.ready(0);
  CHECK_EQ(own.next(), 0);
  own.flow.ready(1);
  CHECK_EQ(own.next(), 0);
  CHECK_EQ(own.next(), 1);
  CHECK_EQ(own.next(), 1);
  CHECK_EQ(own.next(), 2);
  CHECK_EQ(own.next(), -1);
}

TEST_CASE("a_part_that_becomes_ready_late_overtakes_what_has_not_left_for_want_of_room") {
  three_parts own{5}; // One chunk may be on its way at a time.
  own.flow.ready(2);
  own.flow.ready(1);
  CHECK_EQ(own.next(), 1);
  CHECK_EQ(own.next(), -1);
  own.flow.ready(0);
  CHECK_EQ(own.next(), -1);
  own.flow.left(1, 0);
  CHECK_EQ(own.next(), 0);
  own.flow.left(0, 0);
  CHECK_EQ(own.next(), 0);
  own.flow.left(0, 1);
  CHECK_EQ(own.next(), 1);
  CHECK_FALSE(own.flow.done());
  own.flow.left(1, 1);
  CHECK_EQ(own.next(), 2);
  own.flow.left(2, 0);
  CHECK_EQ(own.next(), 2);
  CHECK_FALSE(own.flow.done());
  own.flow.left(2, 1);
  CHECK(own.flow.done());
}

TEST_CASE("chunks_are_taken_while_none_may_be_sent") {
  const auto plan = kernels::block(2, 1);
  const auto own = plan_of_rank(plan, 0);
  const auto gift = plan_of_rank(
    kernels::schedule{
      kernels::collective::all_gather, 2, 0, 1, {{1, 0, 0, kernels::step_kind::copy}}},
    0);
  std::vector<float> sent(4), taken(4);
  bucket_flow flow{std::array{sum_part{&own, sent}, sum_part{&gift, taken}}, 1};
  flow.all_ready();
  REQUIRE(flow.next()); // The first part's first chunk is on its way.
  CHECK_FALSE(flow.next());
  CHECK(flow.awaits(1));
  CHECK(flow.arrived(1, 0, 1));
  CHECK_FALSE(flow.arrived(2, 0, 1));
  const auto now = flow.next();
  REQUIRE(now);
  CHECK_EQ(now->part, 1);
}

} // namespace troupe::bucket_flow_test
