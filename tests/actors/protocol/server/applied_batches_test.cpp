#include "actors/protocol/server/applied_batches.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <random>

namespace applied_batches_test {

using namespace troupe;

namespace {

using pairs = std::vector<std::pair<table_id, partition_id>>;

shard_partition partition_of(std::uint32_t id, std::vector<batch_set> applied,
                             std::uint64_t version = 0) {
  return {{id}, version, std::move(applied)};
}

batch_set set_of(const std::vector<std::uint64_t>& batches) {
  batch_set made;
  for (const auto batch : batches)
    made.insert({batch});
  return made;
}

} // namespace

TEST_CASE("a_batch_is_contained_where_every_partition_has_it") {
  const applied_batches applied{
    {partition_of(4, {set_of({0, 1, 5})}), partition_of(2, {set_of({0, 5})})}, 1};
  CHECK(applied.contains({0}, {0}));
  CHECK(applied.contains({0}, {5}));
  CHECK_FALSE(applied.contains({0}, {1}));
  CHECK(applied.pairs({{0}}, {1}) == pairs{{{0}, {4}}});
  CHECK(applied.floor({{0}}, {100}) == batch_id{1});
  CHECK(applied.floor({{0}}, {0}) == batch_id{0});
  CHECK(applied.everywhere({100}) == set_of({0, 5}));
}

TEST_CASE("partitions_come_back_in_their_order_with_a_version") {
  applied_batches applied{
    {partition_of(4, {}, 7), partition_of(2, {set_of({3})}, 9), partition_of(3, {}, 1)}, 2};
  CHECK(applied.version_max() == 9);
  applied.insert({{1}}, {8});
  const auto all = applied.partitions(11);
  REQUIRE(all.size() == 3);
  CHECK(all[0].partition == partition_id{4});
  CHECK(all[1].partition == partition_id{2});
  CHECK(all[2].partition == partition_id{3});
  for (const auto& each : all) {
    CHECK(each.version == 11);
    CHECK(each.applied.at(1) == set_of({8}));
  }
  CHECK(all[0].applied.at(0) == batch_set{});
  CHECK(all[1].applied.at(0) == set_of({3}));
}

TEST_CASE("applied_batches_that_differ_are_told_apart_as_if_each_partition_had_its_own") {
  std::mt19937 random{3};
  for (int round = 0; round < 200; ++round) {
    std::vector<shard_partition> each;
    for (std::uint32_t p = 0; p < 5; ++p) {
      std::vector<batch_set> of_tables(2);
      for (auto& of_table : of_tables)
        for (std::uint64_t batch = 0; batch < 4; ++batch)
          if (random() % 2 == 0)
            of_table.insert({batch});
      each.push_back(partition_of(p, of_tables));
    }
    applied_batches applied{each, 2};
    for (int i = 0; i < 6; ++i) {
      const batch_id batch{random() % 6};
      const table_id table{static_cast<std::uint32_t>(random() % 2)};
      const auto has = [&](const shard_partition& p) {
        return p.applied[table.value].contains(batch);
      };
      CHECK(applied.contains(table, batch) == std::all_of(each.begin(), each.end(), has));
      auto found = applied.pairs({table}, batch);
      std::sort(found.begin(), found.end());
      pairs expected;
      for (const auto& p : each)
        if (has(p))
          expected.emplace_back(table, p.partition);
      CHECK(found == expected);
      applied.insert({table}, batch);
      for (auto& p : each)
        p.applied[table.value].insert(batch);
    }
    for (std::uint32_t p = 0; p < 5; ++p)
      CHECK(applied.partitions(1)[p].applied == each[p].applied);
  }
}

} // namespace applied_batches_test
