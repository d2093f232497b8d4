#include "actors/graph/launch/slow_calls.hpp"

#include "doctest/doctest.h"

namespace slow_calls_test {

using namespace troupe;
using namespace std::chrono_literals;
using lines = std::vector<std::string>;

TEST_CASE("a_call_that_does_not_return_for_10_s_is_named_once") {
  slow_calls calls;
  const std::vector<open_call> open{{7, "worker 1's trainer"}};
  CHECK(calls.look(open, 1s).empty());
  CHECK(calls.look(open, 10'999ms).empty());
  CHECK(calls.look(open, 11s) == lines{"worker 1's trainer has not returned for 10 s"});
  CHECK(calls.look(open, 60s).empty());
  CHECK(calls.look({}, 61s).empty());
}

TEST_CASE("the_call_that_is_open_for_the_longest_time_is_known_once_it_is_long") {
  slow_calls calls;
  CHECK_FALSE(calls.longest(0s));
  calls.look({{7, "evaluator 'test'"}}, 10s);
  CHECK_FALSE(calls.longest(2s));
  calls.look({{3, "worker 1's trainer"}, {7, "evaluator 'test'"}}, 11'999ms);
  CHECK_FALSE(calls.longest(2s));
  calls.look({{3, "worker 1's trainer"}, {7, "evaluator 'test'"}}, 12s);
  CHECK(calls.longest(2s) == "evaluator 'test'");
  calls.look({{3, "worker 1's trainer"}}, 13s);
  CHECK_FALSE(calls.longest(2s));
}

TEST_CASE("the_patience_can_be_shorter") {
  slow_calls calls{4s};
  const std::vector<open_call> open{{7, "keeper 'sums'"}};
  CHECK(calls.look(open, 1s).empty());
  CHECK(calls.look(open, 4'999ms).empty());
  CHECK(calls.look(open, 5s) == lines{"keeper 'sums' has not returned for 4 s"});
}

TEST_CASE("a_later_call_of_the_same_name_has_its_own_time") {
  slow_calls calls;
  for (std::uint64_t number = 1; number <= 5; ++number)
    for (const auto at : {0s, 9s})
      CHECK(calls.look({{number, "evaluator 'test'"}}, 20s * number + at).empty());
}

TEST_CASE("each_of_several_slow_calls_is_named") {
  slow_calls calls;
  const std::vector<open_call> open{{1, "stage 'a'"}, {2, "stage 'b'"}};
  CHECK(calls.look(open, 0s).empty());
  CHECK(calls.look(open, 10s)
        == lines{"stage 'a' has not returned for 10 s", "stage 'b' has not returned for 10 s"});
}

} // namespace slow_calls_test
