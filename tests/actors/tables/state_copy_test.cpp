#include "actors/tables/state_copy.hpp"

#include "actors/tables/table_store.hpp"
#include "tests/actors/shard_fixture.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <numeric>

namespace troupe::state_copy_test {

namespace {

using namespace test;

float_ptr floats(std::size_t count, float first) {
  auto memory = std::make_shared<std::vector<float>>(count);
  std::iota(memory->begin(), memory->end(), first);
  return {memory, memory->data()};
}

block_image block(std::uint64_t number, std::uint64_t version, std::size_t count = 4) {
  return {{0}, number, version, version, count, floats(count, static_cast<float>(version)),
          0,   nullptr};
}

slab_image slab(std::uint64_t number, std::uint64_t version) {
  static const auto keys =
    std::make_shared<std::vector<std::uint64_t>>(std::initializer_list<std::uint64_t>{7, 9});
  return {
    {1},    number, version, 2, {keys, keys->data()}, 3, floats(6, static_cast<float>(version)),
    nullptr};
}

partition_image partition(std::uint32_t id, std::vector<block_image> blocks,
                          std::vector<slab_image> slabs = {}) {
  return {{id}, 9, std::vector<batch_set>(2), std::move(blocks), std::move(slabs)};
}

const copy_part third_state{.config = {2}, .index = 3, .image = {}, .clock_max = 8};

/// Receives a copy of which no part is lost.
copy_in_progress received(const std::vector<partition_image>& whole,
                          const std::vector<partition_image>& own) {
  copy_in_progress copy{{2}, own};
  std::vector<copy_part> parts;
  while (!copy.complete())
    for (const auto& request : copy.ask()) {
      CHECK(request.config.value == 2);
      if (request.part == 0)
        parts = cut_into_parts(third_state, whole, request.held);
      else
        CHECK(request.held.empty());
      REQUIRE(request.part < parts.size());
      CHECK(copy.add(parts[request.part]));
    }
  return copy;
}

std::uint64_t bytes_of(const std::vector<copy_part>& parts) {
  std::uint64_t bytes = 0;
  for (const auto& part : parts)
    bytes += content_bytes(part.image);
  return bytes;
}

void check_equal(const std::vector<partition_image>& a, const std::vector<partition_image>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].partition == b[i].partition);
    CHECK(a[i].version == b[i].version);
    CHECK(a[i].applied == b[i].applied);
    CHECK(versions_of({a[i]}) == versions_of({b[i]}));
    REQUIRE(a[i].blocks.size() == b[i].blocks.size());
    for (std::size_t k = 0; k < a[i].blocks.size(); ++k) {
      const auto &x = a[i].blocks[k], &y = b[i].blocks[k];
      CHECK(x.steps == y.steps);
      REQUIRE(x.count == y.count);
      CHECK(std::equal(x.values.get(), x.values.get() + x.count, y.values.get()));
    }
    REQUIRE(a[i].slabs.size() == b[i].slabs.size());
    for (std::size_t k = 0; k < a[i].slabs.size(); ++k) {
      const auto &x = a[i].slabs[k], &y = b[i].slabs[k];
      REQUIRE(x.count == y.count);
      CHECK(std::equal(x.rows.get(), x.rows.get() + x.count * x.row_floats, y.rows.get()));
      CHECK(std::equal(x.keys.get(), x.keys.get() + x.count, y.keys.get()));
    }
  }
}

/// Returns a partition of several parts, and an empty one.
std::vector<partition_image> some_large() {
  std::vector<block_image> blocks;
  for (std::uint64_t i = 0; i < 20; ++i)
    blocks.push_back(block(i, i + 1, 100'000));
  return {partition(0, std::move(blocks), {slab(0, 5), slab(1, 6)}), partition(3, {})};
}

} // namespace

TEST_CASE("a copy is cut into parts and put together again") {
  const auto whole = some_large();
  const auto parts = cut_into_parts(third_state, whole, {});
  REQUIRE(parts.size() > 3);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    CHECK(parts[i].part == i);
    CHECK(parts[i].parts == parts.size());
    CHECK(bytes_of({parts[i]}) <= copy_part_bytes + 400'000);
  }
  const auto copy = received(whole, {});
  CHECK(copy.first().index == 3);
  CHECK(copy.first().clock_max == 8);
  check_equal(*copy.images(), whole);
}

TEST_CASE("what the joiner holds is not sent") {
  auto own = some_large();
  own[0].blocks[3] = block(3, 2, 100'000); // This block of the joiner is older.
  own[0].slabs[1] = slab(1, 4);
  const auto whole = some_large();
  const auto parts = cut_into_parts(third_state, whole, versions_of(own));
  CHECK(bytes_of(parts) == 400'000 + 2 * (3 * 4 + 8 + 8)); // Rows count with keys and steps.
  const auto copy = received(whole, own);
  check_equal(*copy.images(), whole);
  const auto all_held = cut_into_parts(third_state, whole, versions_of(whole));
  CHECK(all_held.size() == 2);
  CHECK(bytes_of(all_held) == 0);
}

TEST_CASE("a copy that names what the joiner does not have is none") {
  const auto whole = some_large();
  auto lacks = whole;
  SUBCASE("a block") { lacks[0].blocks.erase(lacks[0].blocks.begin() + 3); }
  SUBCASE("another version of it") { lacks[0].blocks[3].version += 1; }
  SUBCASE("a slab") { lacks[0].slabs.pop_back(); }
  copy_in_progress copy{{2}, lacks};
  for (const auto& part : cut_into_parts(third_state, whole, versions_of(whole)))
    CHECK(copy.add(part));
  REQUIRE(copy.complete());
  CHECK_FALSE(copy.images());
}

TEST_CASE("some parts are asked for ahead") {
  const auto parts = cut_into_parts(third_state, some_large(), {});
  REQUIRE(parts.size() > copy_parts_ahead + 2);
  copy_in_progress copy{{2}, {}};
  const auto ask = [&] {
    std::vector<std::uint32_t> numbers;
    for (const auto& request : copy.ask())
      numbers.push_back(request.part);
    return numbers;
  };
  using numbers = std::vector<std::uint32_t>;
  CHECK(ask() == numbers{0});
  CHECK(ask().empty());
  CHECK(copy.add(parts[0]));
  CHECK(ask() == numbers{1, 2, 3, 4});
  CHECK(copy.add(parts[1]));
  CHECK(ask() == numbers{5});
  CHECK_FALSE(copy.add(parts[3])); // Part 2 was lost.
  CHECK_FALSE(copy.add(parts[1]));
  CHECK(ask().empty());
  copy.ask_again();
  CHECK(ask() == numbers{2, 3, 4, 5});
}

TEST_CASE("the first part of another copy takes the place of what there was") {
  const auto whole = some_large();
  const auto parts = cut_into_parts(third_state, whole, {});
  auto later = third_state;
  later.index = 4;
  const auto others = cut_into_parts(later, whole, {});
  copy_in_progress copy{{2}, {}};
  CHECK(copy.add(parts[0]));
  CHECK(copy.add(parts[1]));
  SUBCASE("when it comes") { CHECK(copy.add(others[0])); }
  SUBCASE("even when a later part comes before it") {
    CHECK_FALSE(copy.add(others[2]));
    CHECK_FALSE(copy.add(parts[2]));
    copy.ask_again();
    REQUIRE(copy.ask().front().part == 0);
    CHECK(copy.add(others[0]));
  }
  CHECK(copy.first().index == 4);
  for (std::size_t i = 1; i < others.size(); ++i)
    CHECK(copy.add(others[i]));
  check_equal(*copy.images(), whole);
}

TEST_CASE("what came of a copy is held in the next one") {
  const auto whole = some_large();
  auto own = whole;
  own[0].blocks.resize(2);
  own[0].slabs.clear();
  copy_in_progress begun{{1}, own};
  auto old = third_state;
  old.config = {1};
  const auto parts = cut_into_parts(old, whole, versions_of(own));
  CHECK(begun.add(parts[0]));
  CHECK(begun.add(parts[1]));
  const auto has = std::move(begun).give_up();
  const auto rest = cut_into_parts(third_state, whole, versions_of(has));
  CHECK(bytes_of(rest) == bytes_of(parts) - bytes_of({parts[0], parts[1]}));
  CHECK(received(whole, has).bytes() == bytes_of(rest));
  check_equal(*received(whole, has).images(), whole);
}

TEST_CASE("parts of another epoch are none of a copy") {
  auto old = third_state;
  old.config = {1};
  copy_in_progress copy{{2}, {}};
  for (const auto& part : cut_into_parts(old, some_large(), {}))
    CHECK_FALSE(copy.add(part));
  CHECK_FALSE(copy.complete());
}

// Equal content of two replicas has the same version, however often it was pinned.
TEST_CASE("replicas that took the same steps agree on the versions of their slabs") {
  auto job = job_of({asp()});
  job.tables[0].shape.clear();
  job.tables[0].kind = table_kind::sparse;
  job.tables[0].width = 2;
  const auto pool = std::make_shared<buffer_pool>();
  const std::vector<partition_id> here{{0}, {1}, {2}, {3}};
  table_store often{job, here, pool}, seldom{job, here, pool};
  const auto partitions = fresh(job, {0, 1, 2, 3});
  const auto keys =
    std::make_shared<std::vector<std::uint64_t>>(std::initializer_list<std::uint64_t>{3, 7, 8, 21});
  push_request push;
  push.tables = {{0}};
  push.rows = {{{{0}, 2, 4, {keys, keys->data()}}, floats(8, 1)}};
  const push_request* const pushes[] = {&push};
  const auto step = [&](table_store& values) {
    REQUIRE(values.apply({.tables = {{0}}, .skip = {}}, pushes));
  };
  for (int i = 0; i < 3; ++i) {
    step(often);
    step(seldom);
    (void)often.pin(partitions);
  }
  const auto held = versions_of(seldom.pin(partitions));
  REQUIRE_FALSE(held.empty());
  CHECK(versions_of(often.pin(partitions)) == held);
  step(often);
  const auto later = versions_of(often.pin(partitions));
  REQUIRE(later.size() == held.size());
  for (std::size_t i = 0; i < held.size(); ++i)
    CHECK(later[i].version > held[i].version);
}

} // namespace troupe::state_copy_test
