#include "actors/graph/report/run_console.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <string>
#include <vector>

namespace run_console_test {

using namespace troupe;

TEST_CASE("a console shows both names of a member") {
  std::vector<std::string> lines;
  run_console console{"tiny", [&](log_level, const std::string& line) { lines.push_back(line); }};
  console.also_name({{"actor 1", "line:2"}});
  const auto lost = [&](const std::string& member) {
    console.event(
      {event_kind::actor_lost, {{"member", member}, {"reason", std::string{"evicted"}}}}, {});
  };
  lost("actor 1");
  lost("actor 11");
  console.event(note_of("actor 1 is no member here"), {});
  CHECK(lines
        == std::vector<std::string>{"actor 1 (line:2) lost (evicted)", "actor 11 lost (evicted)",
                                    "actor 1 is no member here"});
}

} // namespace run_console_test
