#include "serialization/consistency.hpp"

#include "doctest/doctest.h"
#include "serialization/job.hpp"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace troupe::test::consistency_test {

namespace {

job_spec job_with(const std::vector<const char*>& modes) {
  job_spec job;
  for (const auto* mode : modes)
    job.tables.push_back({.name = mode, .shape = {4}, .sync = *parse_consistency(mode)});
  return job;
}

} // namespace

TEST_CASE("consistencies are read and written") {
  for (const auto* text : {"bsp", "ssp:0", "ssp:3", "ssp:1000000", "asp", "hogwild"}) {
    const auto parsed = parse_consistency(text);
    REQUIRE(parsed);
    CHECK(to_string(*parsed) == text);
  }
  CHECK(parse_consistency("ssp:3")->staleness_clocks == 3);
}

TEST_CASE("a consistency that does not exist is refused with the choices") {
  for (const auto* text : {"", "BSP", "ssp", "ssp:", "ssp:-1", "ssp:1x", "ssp:1000001", "ssp: 1",
                           "ssp:99999999999999999999", "asp "}) {
    const auto parsed = parse_consistency(text);
    REQUIRE(!parsed);
    CHECK(parsed.error().code == errc::invalid_argument);
    CHECK(parsed.error().text
          == "consistency must be bsp, ssp:S (S: clocks, 0 to 1000000), asp or hogwild, not '"
               + std::string{text} + "'");
  }
}

TEST_CASE("every mode has a name that is read back") {
  for (const auto& row : mode_rows) {
    const consistency made{row.mode, row.has_slack ? 5u : 0u};
    const auto read = parse_consistency(to_string(made));
    REQUIRE(read);
    CHECK(*read == made);
    CHECK(made.traits().name == row.name);
  }
}

TEST_CASE("every mode has a row in the guide and in the README") {
  for (const std::string page : {"/docs/guide/consistency.md", "/README.md"}) {
    std::ifstream file{TROUPE_SOURCE_DIR + page};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    for (const auto& row : mode_rows) {
      CAPTURE(page);
      CAPTURE(row.name);
      const auto name = std::string{row.name} + (row.has_slack ? ":S" : "");
      CHECK(text.find("\n| `" + name + "` ") != std::string::npos);
    }
  }
}

TEST_CASE("modes of one memory are no choice where there are servers") {
  CHECK(mode_choices() == "bsp, ssp:S, asp or hogwild");
  CHECK(mode_choices({}, true) == "bsp, ssp:S or asp");
}

TEST_CASE("a number that names no mode has no property") {
  const consistency none{static_cast<consistency_mode>(mode_rows.size()), 3};
  CHECK(to_string(none) == "unknown");
  const auto& row = none.traits();
  CHECK(!(row.clock_updates || row.bounded_lead || row.stale_steps || row.one_memory));
}

TEST_CASE("properties that contradict each other are of no mode") {
  for (const auto& row : mode_rows) {
    CHECK(!(row.clock_updates && row.bounded_lead));
    CHECK(!(row.clock_updates && row.stale_steps));
    CHECK(!(row.one_memory && (row.pulls_wait() || row.stale_steps)));
    CHECK((row.bounded_lead || !row.has_slack));
  }
}

TEST_CASE("a job has the properties of its tables") {
  CHECK(goes_by_clocks(job_with({"asp", "bsp"})));
  CHECK(!goes_by_clocks(job_with({"asp", "ssp:3"})));
  CHECK(mixes_clocks(job_with({"asp", "bsp"})));
  CHECK(!mixes_clocks(job_with({"bsp", "bsp"})));
  CHECK(!mixes_clocks(job_with({"asp", "ssp:3"})));
  CHECK(has_waiting_pulls(job_with({"asp", "ssp:3"})));
  CHECK(has_waiting_pulls(job_with({"bsp"})));
  CHECK(!has_waiting_pulls(job_with({"asp", "hogwild"})));
  CHECK(least_lead(job_with({"ssp:7", "asp", "ssp:2", "bsp"})) == 2);
  CHECK(!least_lead(job_with({"asp", "bsp"})));
  CHECK(any_table(job_with({"bsp", "asp"}), &mode_traits::stale_steps));
  CHECK(!any_table(job_with({"bsp", "hogwild"}), &mode_traits::stale_steps));
}

} // namespace troupe::test::consistency_test
