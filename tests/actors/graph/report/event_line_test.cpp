#include "actors/graph/report/event_line.hpp"

#include "doctest/doctest.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <string>

namespace event_line_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

constexpr std::chrono::system_clock::time_point noon{1'000'000s};

} // namespace

TEST_CASE("each_event_is_a_line_of_json_with_its_sentence") {
  CHECK(event_line({event_kind::member_joined, {{"member", "worker 1"}}}, 1234567us, noon)
        == R"({"time":1.235,"unix":1000000.0,"event":"member_joined","member":"worker 1",)"
           R"("text":"worker 1 joined"})"
           "\n");
  const job_event end{event_kind::run_ended,
                      {{"status", std::uint64_t{1}}, {"reason", "no\xff room"}}};
  const auto ended = nlohmann::json::parse(event_line(end, 2s, noon));
  CHECK(ended["reason"] == "no\\xff room"); // Bytes that are not UTF-8 are escaped.
  CHECK_FALSE(ended.contains("text"));
  const job_event lost{event_kind::evaluated, {{"loss", std::numeric_limits<double>::quiet_NaN()}}};
  CHECK(nlohmann::json::parse(event_line(lost, 3s, noon))["loss"].is_null());
}

TEST_CASE("a_line_is_read_as_the_event_that_was_written") {
  const job_event what{event_kind::progress,
                       {{"phase", "training"}, {"done", 0.5}, {"active", std::uint64_t{7}}}};
  const auto read = parse_event(event_line(what, 1s, noon));
  REQUIRE(read);
  CHECK(read->kind == what.kind);
  for (const auto& field : what.fields) {
    REQUIRE(read->find(field.name) != nullptr);
    CHECK(*read->find(field.name) == field.value);
  }
  for (const auto* other : {"", "{", "3", "[]", "{}", R"({"event":3})", R"({"event":"unknown"})"})
    CHECK_FALSE(parse_event(other));
}

} // namespace event_line_test
