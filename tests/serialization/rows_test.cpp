#include "serialization/rows.hpp"

#include "doctest/doctest.h"

#include <numeric>
#include <set>

namespace troupe::test::rows_test {

TEST_CASE("the first key that is not larger than the one before it is found, wherever it is") {
  CHECK(first_unordered({}) == 0);
  for (const std::size_t count : {1u, 2u, 1024u, 1025u, 3000u}) {
    std::vector<std::uint64_t> keys(count);
    std::iota(keys.begin(), keys.end(), 7u);
    CHECK(first_unordered(keys) == count);
    for (const std::size_t at : {std::size_t{1}, count / 2, count - 1}) {
      if (at == 0 || at >= count)
        continue;
      auto changed = keys;
      changed[at] = changed[at - 1];
      CHECK(first_unordered(changed) == at);
      changed[at] = 0;
      CHECK(first_unordered(changed) == at);
    }
  }
}

TEST_CASE("hashes of keys are those of the storage format, and differ") {
  CHECK(row_hash(0) == 0);
  CHECK(row_hash(1) == 0x5692161d100b05e5);
  std::set<std::uint64_t> seen;
  for (std::uint64_t key = 0; key < 10'000; ++key)
    seen.insert(row_hash(key));
  CHECK(seen.size() == 10'000);
}

} // namespace troupe::test::rows_test
