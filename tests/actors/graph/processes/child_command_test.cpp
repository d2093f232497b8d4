#include "actors/graph/processes/child_command.hpp"

#include "doctest/doctest.h"

namespace child_command_test {

using namespace troupe;

TEST_CASE("a_child_reads_who_it_is_as_it_was_written") {
  const child_identity written{{role::worker, 7, {~std::uint64_t{0}}}, 5, 6};
  const auto words = child_arguments(written);
  REQUIRE(words.size() == 2);
  CHECK(words[0] == "--child");
  const auto read = parse_child(words[1]);
  REQUIRE(read);
  CHECK(read->self == written.self);
  CHECK(read->inherited == 5);
  CHECK(read->notices == 6);
}

TEST_CASE("a_child_is_read_from_its_command_line") {
  const auto who = parse_child("1:7:12345678901234567890:-1:-1");
  REQUIRE(who);
  CHECK(who->self == member_id{role::server, 7, {12345678901234567890ull}});
  CHECK(who->inherited == -1);
  CHECK(who->notices == -1);
  CHECK(parse_child("0:0:5:17:8")->inherited == 17);
  CHECK(parse_child("0:0:5:17:8")->notices == 8);
}

TEST_CASE("text_that_is_no_child_is_refused") {
  for (const std::string text :
       {"", "1", "1:2:3", "1:2:3:", "1:2:3:4", "1:2:3:4:", "1:2:3:4x:5", "1:2:3:4:5x",
        "3:0:1:-1:-1", "9:0:1:-1:-1", "1:-2:3:4:5", "1:2:-3:4:5", " 1:2:3:4:5", "1:2:3:4:5:6",
        "x:2:3:4:5", "1:2:99999999999999999999:4:5", "1:2:3:-2:5", "1:2:3:4:-2"}) {
    CAPTURE(text);
    const auto who = parse_child(text);
    REQUIRE_FALSE(who);
    CHECK(who.error()
          == failure{errc::invalid_argument, "--child is for processes that the launcher starts"});
  }
}

} // namespace child_command_test
