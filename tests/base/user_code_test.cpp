#include "base/user_code.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <latch>
#include <thread>

namespace user_code_test {

using namespace troupe;

namespace {

std::vector<std::string> open_names() {
  std::vector<std::string> names;
  for (const auto& call : open_calls())
    names.push_back(call.name);
  std::ranges::sort(names);
  return names;
}

using names = std::vector<std::string>;

} // namespace

TEST_CASE("a_call_is_named_after_its_member_its_kind_and_its_node") {
  CHECK(to_string({"trainer", {}, "worker 1"}) == "worker 1's trainer");
  CHECK(to_string({"push function", "privacy", "worker 0"})
        == "worker 0's push function 'privacy'");
  CHECK(to_string({"stage", "lossy"}) == "stage 'lossy'");
}

TEST_CASE("a_call_is_open_until_it_ends_and_the_innermost_one_is_named") {
  CHECK(open_calls().empty());
  CHECK_FALSE(current_call());
  {
    const user_call outer{{"outer"}};
    const auto first = open_calls();
    CHECK(current_call() == "outer");
    {
      const user_call inner{{"inner"}};
      CHECK(open_names() == names{"inner"});
      CHECK(open_calls().front().number != first.front().number);
    }
    CHECK(open_calls() == first);
  }
  CHECK(open_calls().empty());
  const user_call next{{"outer"}};
  CHECK(open_calls().size() == 1);
}

TEST_CASE("two_calls_of_one_name_have_two_numbers") {
  std::vector<open_call> first;
  {
    const user_call here{{"trainer"}};
    first = open_calls();
  }
  const user_call here{{"trainer"}};
  CHECK(open_calls().front().number != first.front().number);
}

TEST_CASE("each_thread_has_its_own_call_and_its_place_is_used_again") {
  for (int round = 0; round < 3; ++round) {
    std::latch begun{3}, end{1};
    const auto work = [&](const char* name) {
      const user_call here{{name}};
      begun.count_down();
      end.wait();
      CHECK(current_call() == name);
    };
    std::thread a{work, "a"}, b{work, "b"};
    begun.arrive_and_wait();
    CHECK(open_names() == names{"a", "b"});
    CHECK_FALSE(current_call());
    end.count_down();
    a.join();
    b.join();
    CHECK(open_calls().empty());
  }
}

} // namespace user_code_test
