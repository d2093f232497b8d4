#include "actors/graph/report/event_log.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace event_log_test {

using namespace troupe;
using namespace std::chrono_literals;
using storage::temporary_directory;

namespace {

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::ifstream from{file};
  std::vector<std::string> lines;
  for (std::string line; std::getline(from, line);)
    lines.push_back(line);
  return lines;
}

constexpr std::chrono::system_clock::time_point noon{1'000'000s};

} // namespace

TEST_CASE("each_event_is_a_line_of_json_with_its_sentence") {
  const temporary_directory folder;
  auto log = event_log::open(folder.path() / "events.jsonl");
  REQUIRE(log);
  CHECK(log->write({event_kind::member_joined, {{"member", "worker 1"}}}, 1234567us, noon));
  CHECK(log->write(
    {event_kind::run_ended, {{"status", std::uint64_t{1}}, {"reason", "no\xff room"}}}, 2s, noon));
  CHECK(log->write({event_kind::evaluated, {{"loss", std::numeric_limits<double>::quiet_NaN()}}},
                   3s, noon));
  const auto lines = lines_of(folder.path() / "events.jsonl");
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]
        == R"({"time":1.235,"unix":1000000.0,"event":"member_joined","member":"worker 1",)"
           R"("text":"worker 1 joined"})");
  const auto ended = nlohmann::json::parse(lines[1]); // Bytes that are not UTF-8 are escaped.
  CHECK(ended["reason"] == "no\\xff room");
  CHECK_FALSE(ended.contains("text"));
  CHECK(nlohmann::json::parse(lines[2])["loss"].is_null());
}

TEST_CASE("a_line_is_read_as_the_event_that_was_written") {
  const temporary_directory folder;
  const job_event what{event_kind::progress,
                       {{"phase", "training"}, {"done", 0.5}, {"active", std::uint64_t{7}}}};
  auto log = event_log::open(folder.path() / "events.jsonl");
  REQUIRE(log);
  CHECK(log->write(what, 1s, noon));
  const auto read = parse_event(lines_of(folder.path() / "events.jsonl").at(0));
  REQUIRE(read);
  CHECK(read->kind == what.kind);
  for (const auto& field : what.fields) {
    REQUIRE(read->find(field.name) != nullptr);
    CHECK(*read->find(field.name) == field.value);
  }
  for (const auto* other : {"", "{", "3", "[]", "{}", R"({"event":3})", R"({"event":"unknown"})"})
    CHECK_FALSE(parse_event(other));
}

TEST_CASE("a_file_is_appended_to_and_one_that_cannot_be_opened_is_named") {
  const temporary_directory folder;
  for (int i = 0; i < 2; ++i)
    CHECK(
      event_log::open(folder.path() / "events.jsonl")->write({event_kind::stopping, {}}, 0s, noon));
  CHECK(lines_of(folder.path() / "events.jsonl").size() == 2);
  const auto none = event_log::open(folder.path() / "no" / "events.jsonl");
  REQUIRE_FALSE(none);
  CHECK(none.error().code == errc::io_failed);
  CHECK(none.error().text.find("no/events.jsonl") != std::string::npos);
}

TEST_CASE("an_event_that_cannot_be_written_is_an_error") {
  auto full = event_log::open("/dev/full");
  REQUIRE(full);
  CHECK(full->write({event_kind::stopping, {}}, 0s, noon).error()
        == failure{errc::io_failed, "cannot write /dev/full: No space left on device"});
}

} // namespace event_log_test
