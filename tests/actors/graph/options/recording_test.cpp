#include "actors/graph/options/recording.hpp"

#include "actors/graph/options/fields.hpp"
#include "tests/actors/tiny_training.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "CLI/CLI.hpp"
#include "doctest/doctest.h"

#include <algorithm>

namespace recording_test {

using namespace troupe;
using namespace troupe::test;

namespace {

run_options parsed(std::vector<std::string> words) {
  run_options options;
  CLI::App app;
  declare(app, options);
  std::reverse(words.begin(), words.end());
  app.parse(words);
  return options;
}

std::string rejection_of(const std::vector<std::string>& words) {
  const auto valid = validate(parsed(words));
  return valid ? "" : valid.error().text;
}

job_spec job_with(consistency_mode first, consistency_mode second) {
  job_spec job;
  job.name = "tiny";
  job.samples = 10;
  job.tables = {table_of("a", 4), table_of("b", 4)};
  job.tables[0].sync.mode = first;
  job.tables[1].sync.mode = second;
  return job;
}

} // namespace

TEST_CASE("the_command_line_says_what_is_recorded_and_replayed") {
  CHECK(parsed({"--record", "r"}).record_directory == "r");
  const auto x = parsed({"--replay", "r", "--until", "2.5", "--compare", "e.npz"});
  CHECK(x.replay_directory == "r");
  CHECK(x.replay_seconds == 2.5);
  CHECK(x.compare_file == "e.npz");
  CHECK(x.given.contains("--replay"));
  CHECK_THROWS_AS(parsed({"--record", "r", "--replay", "r"}), CLI::ParseError);
  CHECK_THROWS_AS(parsed({"--compare", "e.npz"}), CLI::ParseError);
  CHECK_THROWS_AS(parsed({"--until", "2"}), CLI::ParseError);
  CHECK_THROWS_AS(parsed({"--replay", "r", "--until", "-1"}), CLI::ParseError);
}

TEST_CASE("what_cannot_be_recorded_is_refused") {
  CHECK(rejection_of({"--replay", "r", "--until", "1"}) == "");
  CHECK(rejection_of({"--replay", "r", "--compare", "e.npz"}) == "");
  CHECK(rejection_of({"--replay", "r", "--until", "1", "--compare", "e.npz"})
        == "--until stops within the run, and --compare needs its end: leave one out");
  CHECK(rejection_of({"--record", "r"}) == "");
  CHECK(rejection_of({"--record", "r", "--sync", "hogwild"})
        == "--sync hogwild applies in no order that could be recorded: leave out --record");
  for (const std::vector<std::string>& start :
       {std::vector<std::string>{"--resume"}, std::vector<std::string>{"--import", "p.npz"}}) {
    std::vector<std::string> words{"--record", "r", "--checkpoint", "c"};
    words.insert(words.end(), start.begin(), start.end());
    CHECK(rejection_of(words)
          == "--record begins with the initial values: leave out --resume and --import");
  }
}

TEST_CASE("a_record_begins_before_the_run_does") {
  const storage::temporary_directory folder;
  run_options options;
  const auto asp = job_with(consistency_mode::asp, consistency_mode::ssp);
  CHECK(begin_recording(options, asp));
  CHECK_FALSE(recording_of(options, {}));
  options.record_directory = folder.path() / "r";
  CHECK(begin_recording(options, asp));
  CHECK(recording_of(options, {})->directory == folder.path() / "r");
  CHECK(begin_recording(options, asp).error().code == errc::in_use);
  options.join = endpoint{"10.0.0.1", 4000}; // This is another host of the job.
  CHECK(begin_recording(options, asp));
}

} // namespace recording_test
