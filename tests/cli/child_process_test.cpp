#include "cli/chaos/child_process.hpp"

#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <fstream>
#include <string>
#include <thread>

namespace troupe::chaos::child_process_test {

namespace {

int status_of(child_process& process) {
  while (!process.ended())
    std::this_thread::yield();
  return *process.ended();
}

} // namespace

TEST_CASE("what_a_process_is_told_it_reads") {
  const storage::temporary_directory folder;
  auto process = child_process::start({"sh", "-c", "read word; echo $word"}, folder.path() / "out");
  REQUIRE(process);
  process->tell("go\n");
  CHECK(status_of(*process) == 0);
  std::string said;
  std::getline(std::ifstream{folder.path() / "out"}, said);
  CHECK(said == "go");
}

TEST_CASE("a_word_to_a_process_that_has_ended_is_lost_and_does_no_harm") {
  const storage::temporary_directory folder;
  auto process = child_process::start({"true"}, folder.path() / "out");
  REQUIRE(process);
  CHECK(status_of(*process) == 0);
  process->tell("go\n");
  CHECK(process->ended() == 0);
}

TEST_CASE("a_program_that_is_not_there_is_named") {
  const storage::temporary_directory folder;
  auto process = child_process::start({"/no such program"}, folder.path() / "out");
  REQUIRE_FALSE(process);
  CHECK(process.error().text.find("/no such program") != std::string::npos);
}

} // namespace troupe::chaos::child_process_test
