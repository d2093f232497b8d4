// Each case forks a process that exits, and looks at its status and its line.
#include "base/system/exit_guard.hpp"

#include "base/system/descriptor.hpp"
#include "base/user_code.hpp"

#include "doctest/doctest.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

namespace exit_guard_test {

using namespace troupe;

namespace {

struct ending {
  int status = -1;
  std::string line;
};

/// Runs `what` in a forked process, which gives it a writer of lines.
ending ending_of(const std::function<void(exit_guard::line_writer)>& what) {
  int ends[2] = {-1, -1};
  REQUIRE(pipe(ends) == 0);
  const auto child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    close(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    what([to = ends[1]](const std::string& line) {
      [[maybe_unused]] const auto written = write(to, line.data(), line.size());
    });
    _exit(77);
  }
  close(ends[1]);
  const descriptor reading{ends[0]};
  ending found;
  std::array<char, 256> bytes{};
  for (ssize_t got = 0; (got = read(reading.get(), bytes.data(), bytes.size())) > 0;)
    found.line.append(bytes.data(), static_cast<std::size_t>(got));
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  found.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return found;
}

void exit_in_call(int status) {
  const user_call here{{"trainer", {}, "worker 1"}};
  std::exit(status);
}

} // namespace

TEST_CASE("an_exit_before_the_end_names_the_caller_and_has_status_1_in_place_of_0") {
  for (const int status : {0, 3}) {
    const auto found = ending_of([status](auto write) {
      const exit_guard guard{1, write};
      exit_in_call(status);
    });
    CHECK(found.status == (status == 0 ? 1 : status));
    CHECK(found.line
          == "worker 1's trainer called exit(" + std::to_string(status)
               + ") before the job was done");
  }
}

TEST_CASE("quick_exit_has_status_1") {
  const auto found = ending_of([](auto write) {
    const exit_guard guard{0, write};
    const user_call here{{"trainer", {}, "worker 1"}};
    std::quick_exit(0);
  });
  CHECK(found.status == 1);
  CHECK(found.line == "worker 1's trainer called quick_exit() before the job was done");
}

TEST_CASE("any_thread_may_call_it_while_others_do_not_return") {
  const auto found = ending_of([](auto write) {
    const exit_guard guard{1, write};
    std::thread stuck{[] {
      const user_call here{{"evaluator", "test"}};
      pause();
    }};
    std::thread other{[] { exit_in_call(0); }};
    stuck.join();
  });
  CHECK(found.status == 1);
  CHECK(found.line.starts_with("worker 1's trainer called"));
}

TEST_CASE("code_that_no_call_marks_is_the_program") {
  const auto found = ending_of([](auto write) {
    const exit_guard guard{0, write}; // A process that another one restarts keeps its status.
    std::exit(0);
  });
  CHECK(found.status == 0);
  CHECK(found.line == "the program called exit(0) before the job was done");
}

TEST_CASE("a_handler_of_exit_that_does_not_return_has_a_limited_time_and_its_status_stays") {
  const auto found = ending_of([](auto write) {
    std::atexit([] { pause(); });
    { const exit_guard guard{1, write, std::chrono::milliseconds{50}}; }
    std::exit(3);
  });
  CHECK(found.status == 3);
  CHECK(found.line.ends_with(": handlers of exit() did not return within 1 s\n"));
}

TEST_CASE("a_handler_of_exit_runs_under_the_limit") {
  const auto found = ending_of([](auto write) {
    std::atexit([] { _exit(8); });
    { const exit_guard guard{1, write}; }
    std::exit(3);
  });
  CHECK(found.status == 8);
}

TEST_CASE("exit_is_as_usual_without_a_guard_and_in_a_child_that_the_program_forks") {
  const auto after = ending_of([](auto write) {
    { const exit_guard guard{1, write}; }
    exit_in_call(0);
  });
  CHECK(after.status == 0);
  CHECK(after.line.empty());
  const auto forked = ending_of([](auto write) {
    const exit_guard guard{1, write};
    const auto child = fork();
    if (child == 0)
      exit_in_call(5);
    int status = 0;
    waitpid(child, &status, 0);
    _exit(WEXITSTATUS(status));
  });
  CHECK(forked.status == 5);
  CHECK(forked.line.empty());
}

} // namespace exit_guard_test
