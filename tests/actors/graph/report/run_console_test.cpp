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

TEST_CASE("a picture shows both names of a member") {
  run_console console{"tiny", {}};
  console.also_name({{"actor 1", "line:2"}});
  progress_snapshot job;
  job.processes.resize(2);
  job.processes[0].name = "worker-0";
  job.processes[0].node = "line";
  job.processes[1].name = "actor-1";
  job.processes[1].node = "line.1";
  console.name_members(job);
  CHECK(spoken_name(job.processes[0]) == "worker 0");
  CHECK(spoken_name(job.processes[1]) == "actor 1 (line:2)");
  const auto lines = render(job, 80, false);
  CHECK(lines.at(2).starts_with("  worker-0  line    absent"));
  CHECK(lines.at(3).starts_with("  actor-1   line:2  absent"));
}

} // namespace run_console_test
