#include "base/log.hpp"

#include "base/system/file.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace log_test {

using namespace troupe;

namespace {

std::string content_of(const std::filesystem::path& file) {
  const auto content = read_file(file);
  REQUIRE_MESSAGE(content, content.error().text);
  return *content;
}

/// A directory with a log.
struct logged {
  explicit logged(log_options how = {}) : options(std::move(how)) {
    options.file = folder.path() / "worker-1.log";
    options.member = "worker 1";
  }
  std::string text() const { return content_of(options.file); }
  std::string older_text() const { return content_of(folder.path() / "worker-1.log.1"); }

  storage::temporary_directory folder;
  log_options options;
};

} // namespace

TEST_CASE("a_line_of_a_log_has_time_level_and_member") {
  const logged f;
  const log_file log{f.options};
  REQUIRE(log.write(log_level::info, "starts: pid 17"));
  REQUIRE(log.write(log_level::fatal, "two\nlines"));
  const std::string time = R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3} )";
  CHECK(std::regex_match(f.text(), std::regex{time + "info worker 1: starts: pid 17\n" + time
                                              + R"(fatal worker 1: two\\x0alines)" + "\n"}));
  const auto line = log_line(log_level::warn, "server 0", "text");
  CHECK(std::regex_match(line, std::regex{time + "warn server 0: text\n"}));
}

TEST_CASE("the_text_of_a_log_line_is_found_again") {
  CHECK(text_of_line(log_line(log_level::error, "worker 1", "server 2: is lost"))
        == "server 2: is lost\n");
  for (const char* line :
       {"", "ends", "2023-11-14", "2026-11-22T22:23:08.123 no line of a log",
        "a program: cannot go on", "2026-11-22T22:23:08.123 error: a program's own line",
        "terminate called after an exception"})
    CHECK(text_of_line(line) == line);
}

TEST_CASE("levels_are_parsed_and_leave_lines_out") {
  for (const std::string least : {"trace", "debug", "info", "warn", "error", "off"}) {
    const auto level = parse_log_level(least);
    REQUIRE(level);
    const logged f{{.least = *level}};
    const log_file log{f.options};
    std::size_t written = 0;
    for (int each = 0; each <= static_cast<int>(log_level::fatal); ++each) {
      REQUIRE(log.write(static_cast<log_level>(each), "x"));
      written += each >= static_cast<int>(*level) ? 1 : 0;
    }
    const auto text = f.text();
    CHECK(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) == written);
  }
  for (const char* bad : {"", "Info", "fatal", "verbose", "info "}) {
    const auto level = parse_log_level(bad);
    REQUIRE_FALSE(level);
    CHECK(level.error().text
          == "the log level is trace, debug, info, warn, error or off, not '" + std::string{bad}
               + "'");
  }
}

TEST_CASE("a_log_that_was_removed_begins_anew_when_it_is_full") {
  const logged f{{.bytes_max = 4096}};
  const log_file log{f.options};
  REQUIRE(log.write(log_level::info, "before"));
  std::filesystem::remove(f.options.file);
  for (int i = 0; i < 100; ++i)
    REQUIRE(log.write(log_level::info, "line " + std::to_string(i)));
  CHECK(f.text().ends_with("info worker 1: line 99\n"));
}

TEST_CASE("a_pipe_in_the_place_of_a_log_is_refused_at_once") {
  const logged f;
  REQUIRE(mkfifo(f.options.file.c_str(), 0600) == 0);
  const log_file log{f.options};
  CHECK(log.write(log_level::info, "x").error()
        == failure{errc::io_failed, "cannot open its log: No such device or address"});
}

TEST_CASE("a_log_has_a_long_text_whole") {
  const logged f;
  const log_file log{f.options};
  REQUIRE(log.write(log_level::info, std::string(10'000, 'x')));
  CHECK(f.text().ends_with(": " + std::string(10'000, 'x') + "\n"));
}

TEST_CASE("a_log_keeps_within_its_size_in_two_files") {
  const logged f{{.bytes_max = 4096}};
  const log_file log{f.options};
  for (int i = 0; i < 1000; ++i)
    REQUIRE(log.write(log_level::info, "line " + std::to_string(i)));
  const auto older = f.older_text(), newer = f.text();
  CHECK(newer.size() <= 4096);
  CHECK(older.size() <= 4096);
  CHECK(older.size() > 4000);
  CHECK(newer.ends_with("info worker 1: line 999\n"));
  // No line between the files is lost.
  const auto first = std::stoi(newer.substr(newer.find("line ") + 5));
  CHECK(older.ends_with("line " + std::to_string(first - 1) + "\n"));
  CHECK(std::distance(std::filesystem::directory_iterator{f.folder.path()}, {}) == 2);
  const log_file again{f.options};
  REQUIRE(again.write(log_level::info, "goes on"));
  CHECK(f.text().ends_with("info worker 1: goes on\n"));
}

TEST_CASE("a_line_that_cannot_be_written_is_an_error_and_the_next_is_tried_anew") {
  logged f;
  std::filesystem::create_symlink("/dev/full", f.options.file);
  const log_file full{f.options};
  for (int i = 0; i < 2; ++i) {
    const auto written = full.write(log_level::info, "x");
    REQUIRE_FALSE(written);
    CHECK(written.error()
          == failure{errc::io_failed, "cannot write its log: No space left on device"});
  }
  f.options.file = f.folder.path() / "later" / "worker-1.log";
  const log_file absent{f.options};
  const auto written = absent.write(log_level::info, "x");
  REQUIRE_FALSE(written);
  CHECK(written.error().text == "cannot open its log: No such file or directory");
  std::filesystem::create_directory(f.folder.path() / "later");
  CHECK(absent.write(log_level::info, "x"));
}

TEST_CASE("a_line_that_was_cut_off_does_not_touch_the_next_one") {
  const logged f;
  const log_file log{f.options};
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  auto* const handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small{130, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  int written = 0;
  while (log.write(log_level::info, "line " + std::to_string(written)))
    ++written;
  const bool fails_again = !log.write(log_level::info, "lost");
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  CHECK(fails_again);
  REQUIRE(f.text().size() == 130);
  REQUIRE(log.write(log_level::info, "after"));
  std::istringstream lines{f.text()};
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);)
    all.push_back(line);
  REQUIRE(static_cast<int>(all.size()) == written + 2);
  CHECK(text_of_line(all.back()) == "after");
}

TEST_CASE("a_log_that_cannot_be_moved_goes_on_in_its_file") {
  const logged f{{.bytes_max = 100}};
  std::filesystem::create_directories(f.folder.path() / "worker-1.log.1" / "in the way");
  const log_file log{f.options};
  for (int i = 0; i < 5; ++i)
    REQUIRE(log.write(log_level::info, "line " + std::to_string(i)));
  const auto text = f.text();
  CHECK(std::count(text.begin(), text.end(), '\n') == 5);
}

TEST_CASE("output_of_a_process_goes_to_its_log") {
  const logged f{{.takes_output = true, .bytes_max = 100}};
  const auto child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const log_file log{f.options};
    bool done = true;
    for (int i = 0; i < 4; ++i) {
      done = log.write(log_level::info, "line " + std::to_string(i)) && done;
      done = write(STDERR_FILENO, "raw\n", 4) == 4 && write(STDOUT_FILENO, "out\n", 4) == 4 && done;
    }
    _exit(done ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(f.text().ends_with("line 3\nraw\nout\n"));
  CHECK(f.older_text().ends_with("raw\nout\n"));
}

TEST_CASE("output_that_is_no_line_is_kept_to_the_size_without_a_line") {
  const logged f{{.takes_output = true, .bytes_max = 100}};
  const auto child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const log_file log{f.options};
    log.keep_to_size(); // There is no file yet.
    bool done = static_cast<bool>(log.write(log_level::info, "line"));
    for (int i = 0; i < 100; ++i) {
      done = write(STDOUT_FILENO, "0123456789", 10) == 10 && done;
      log.keep_to_size();
    }
    _exit(done ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(f.text().size() <= 110);
  CHECK(f.older_text().size() <= 110);
  CHECK(std::distance(std::filesystem::directory_iterator{f.folder.path()}, {}) == 2);
}

TEST_CASE("threads_write_whole_lines") {
  const logged f;
  const log_file log{f.options};
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([log] {
      for (int line = 0; line < 100; ++line)
        (void)log.write(log_level::info, std::string(50, 'x'));
    });
  for (auto& each : writers)
    each.join();
  const auto text = f.text();
  CHECK(std::count(text.begin(), text.end(), '\n') == 400);
  CHECK(text.size() % 400 == 0);
}

} // namespace log_test
