#include "base/growing_map.hpp"

#include "doctest/doctest.h"

#include <map>
#include <memory>
#include <random>
#include <vector>

namespace troupe::growing_map_test {

TEST_CASE("a growing map finds and removes what a std::map would") {
  growing_map<std::unique_ptr<int>> mine;
  std::map<std::uint64_t, int> theirs;
  std::mt19937 random{7};
  std::uint64_t last = 0;
  for (int step = 0; step < 20'000; ++step) {
    const bool grows = random() % 100 < (step / 2000 % 2 == 0 ? 60u : 40u);
    if (grows) {
      last += 1 + random() % 3;
      CHECK(*mine.add(last, std::make_unique<int>(step)) == step);
      theirs[last] = step;
    }
    const std::uint64_t key = last - std::min<std::uint64_t>(last, random() % 40);
    const auto expected = theirs.find(key);
    REQUIRE(mine.contains(key) == (expected != theirs.end()));
    if (expected != theirs.end())
      CHECK(**mine.find(key) == expected->second);
    if (!grows) {
      const auto taken = mine.extract(key);
      REQUIRE(taken.has_value() == (expected != theirs.end()));
      if (taken)
        CHECK(**taken == expected->second);
      theirs.erase(key);
    }
    if (step % 1000 == 999) {
      std::vector<std::uint64_t> seen;
      mine.erase_if([&](std::uint64_t each, const std::unique_ptr<int>& value) {
        seen.push_back(each);
        return *value % 5 == 0;
      });
      std::vector<std::uint64_t> all;
      for (const auto& [each, unused] : theirs)
        all.push_back(each);
      CHECK(seen == all);
      std::erase_if(theirs, [](const auto& each) { return each.second % 5 == 0; });
    }
    REQUIRE(mine.size() == theirs.size());
    REQUIRE(mine.empty() == theirs.empty());
  }
  mine.clear();
  CHECK(mine.empty());
  CHECK_FALSE(mine.contains(last));
}

TEST_CASE("a growing map with one old entry takes memory for those that are left") {
  growing_map<std::uint64_t> map;
  map.add(1, 1);
  for (std::uint64_t key = 2; key < 100'000; ++key) {
    map.add(key, key);
    REQUIRE(map.extract(key) == key);
  }
  CHECK(map.capacity() < 16);
  CHECK(map.at(1) == 1);
}

} // namespace troupe::growing_map_test
