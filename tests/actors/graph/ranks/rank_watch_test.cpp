#include "actors/graph/ranks/rank_watch.hpp"

#include "doctest/doctest.h"

namespace rank_watch_test {

using namespace troupe;
using namespace std::chrono_literals;

TEST_CASE("a rank is silent after 10 s without a heartbeat, and others are not") {
  rank_watch watch{2, 0s};
  for (std::uint64_t second = 1; second <= 11; ++second) {
    watch.look({{7, 5}, {8, second}}, std::chrono::seconds{second});
    CHECK(watch.is_silent(0) == (second == 11)); // The first look heard it.
    CHECK_FALSE(watch.is_silent(1));
  }
  watch.look({{7, 6}, {8, 11}}, 12s);
  CHECK_FALSE(watch.is_silent(0));
}

TEST_CASE("a pause of the launcher counts as one second of silence") {
  rank_watch watch{1, 0s};
  watch.look({{7, 5}}, 1s);
  watch.look({{7, 5}}, 100s);
  CHECK_FALSE(watch.is_silent(0));
}

TEST_CASE("a new process is heard with its first line") {
  rank_watch watch{1, 0s};
  for (int second = 1; second <= 20; ++second)
    watch.look({{7, 5}}, std::chrono::seconds{second});
  CHECK(watch.is_silent(0));
  watch.look({{9, 5}}, 21s);
  CHECK_FALSE(watch.is_silent(0));
}

} // namespace rank_watch_test
