#include "serialization/batch_set.hpp"

#include "doctest/doctest.h"
#include "tests/serialization/random_source.hpp"

#include <algorithm>
#include <set>

namespace troupe::test::batch_set_test {

namespace {

using model = std::set<std::uint64_t>;

void check_equal(const batch_set& set, const model& expected) {
  CHECK(set.size() == expected.size());
  CHECK(set.end().value == (expected.empty() ? 0 : *expected.rbegin() + 1));
  std::uint64_t floor = 0;
  while (expected.contains(floor))
    ++floor;
  CHECK(set.floor().value == floor);
  for (std::uint64_t i = 0; i < 700; ++i)
    REQUIRE(set.contains({i}) == expected.contains(i));
  // The representation is a function of the set alone.
  batch_set rebuilt;
  for (auto x : expected)
    rebuilt.insert({x});
  CHECK(rebuilt == set);
  CHECK((set.words().empty() || set.words().back() != 0));
  CHECK(batch_set{set.floor(), set.words()} == set);
}

batch_set filled(random_source& random, model& expected) {
  batch_set set{{random.below(200)}};
  for (std::uint64_t i = 0; i < set.floor().value; ++i)
    expected.insert(i);
  for (auto count = random.below(300); count > 0; --count) {
    const auto batch = random.below(600);
    CHECK(set.insert({batch}) == expected.insert(batch).second);
  }
  return set;
}

} // namespace

TEST_CASE("an empty batch set has nothing") {
  const batch_set set;
  CHECK(set.size() == 0);
  CHECK(set.end().value == 0);
  CHECK(set.floor().value == 0);
  CHECK(!set.contains({0}));
  CHECK(!set.contains({~std::uint64_t{0}}));
}

TEST_CASE("a batch set is a set under random insertions, unions and intersections") {
  random_source random{1};
  for (int round = 0; round < 200; ++round) {
    model expected_a, expected_b;
    auto a = filled(random, expected_a);
    const auto b = filled(random, expected_b);
    check_equal(a, expected_a);
    model expected;
    if (random.chance()) {
      a.unite(b);
      std::set_union(expected_a.begin(), expected_a.end(), expected_b.begin(), expected_b.end(),
                     std::inserter(expected, expected.end()));
    } else {
      a.intersect(b);
      std::set_intersection(expected_a.begin(), expected_a.end(), expected_b.begin(),
                            expected_b.end(), std::inserter(expected, expected.end()));
    }
    check_equal(a, expected);
  }
}

TEST_CASE("a batch set inserted in any order shrinks to its floor") {
  random_source random{2};
  for (std::uint64_t size : {1, 63, 64, 65, 128, 500}) {
    std::vector<std::uint64_t> order(size);
    for (std::uint64_t i = 0; i < size; ++i)
      order[i] = i;
    for (auto i = size - 1; i > 0; --i)
      std::swap(order[i], order[random.below(i + 1)]);
    batch_set set;
    for (auto x : order)
      CHECK(set.insert({x}));
    CHECK(set.floor().value == size);
    CHECK(set == batch_set{{size}});
    CHECK(set.words().size() == (size % 64 != 0 ? 1 : 0));
  }
}

TEST_CASE("sets with far-apart floors are united and intersected without their gap in memory") {
  const std::uint64_t far = std::uint64_t{1} << 40;
  batch_set low{{10}};
  low.insert({100});
  const batch_set high{{far}};
  auto both = low;
  both.intersect(high);
  CHECK(both == low);
  both.unite(high);
  CHECK(both == high);
}

TEST_CASE("any words make a batch set") {
  const auto ones = ~std::uint64_t{0};
  CHECK(batch_set{{5}, {}} == batch_set{{5}});
  CHECK(batch_set{{0}, {ones, ones, 0, 0}} == batch_set{{128}});
  CHECK(batch_set{{70}, {0, 0}} == batch_set{{70}});
  CHECK(batch_set{{64}, {ones - 1}}.size() == 127);
}

} // namespace troupe::test::batch_set_test
