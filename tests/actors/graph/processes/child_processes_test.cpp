// Tests the processes of a launcher with shells as children.
#include "actors/graph/processes/child_processes.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace child_processes_test {

using namespace troupe;

namespace {

constexpr auto forever = "exec sleep 1000";

/// Returns a shell command that sends the launcher a notice of server 1. `--child` is $0.
std::string tells(word_kind kind, const std::string& text = "") {
  auto line = encode(process_word{{role::server, 1}, kind, text});
  line.pop_back();
  return "echo '" + line + "' > /proc/$$/fd/${1##*:}; ";
}

struct fixture {
  explicit fixture(const std::string& script) : children(options(script)) {}

  child_options options(const std::string& script) const {
    child_options made;
    made.executable = "/bin/sh";
    made.command = {"sh", "-c", script};
    made.run_directory = folder.path();
    return made;
  }

  incarnation_id start() {
    const auto begun = children.start(who, -1);
    REQUIRE(begun);
    CHECK(begun->who == who);
    return begun->incarnation;
  }

  /// Waits until the process has ended, and returns what the launcher hears.
  std::vector<session_event> events_at_end() {
    const auto pid = children.pid_of(who);
    REQUIRE(pid);
    siginfo_t unused{};
    REQUIRE(waitid(P_PID, static_cast<id_t>(*pid), &unused, WEXITED | WNOWAIT) == 0);
    auto events = children.tick();
    CHECK_FALSE(children.pid_of(who));
    CHECK(children.tick().empty());
    return events;
  }
  /// Returns the end, after which nothing came.
  process_end end() {
    const auto events = events_at_end();
    REQUIRE_FALSE(events.empty());
    REQUIRE(std::holds_alternative<process_ended>(events.back()));
    const auto& last = std::get<process_ended>(events.back());
    CHECK(last.who == who);
    CHECK(last.how.log == log_path().string());
    return last.how;
  }

  std::filesystem::path log_path() const { return folder.path() / "logs" / "server-1.log"; }
  std::string log() const {
    std::stringstream text;
    text << std::ifstream{log_path()}.rdbuf();
    return text.str();
  }

  storage::temporary_directory folder;
  process_name who{role::server, 1};
  child_processes children;
};

} // namespace

TEST_CASE("a process runs with its identity, and its output is in a log") {
  fixture f{"echo $0 $1 $2 $3; exec sleep 1000"};
  f.start();
  CHECK(f.children.pid_of(f.who));
  CHECK(f.children.tick().empty());
  while (f.log().find('\n') == std::string::npos)
    ; // The process writes soon.
  CHECK(f.log().find("--child 1:1:") == 0);
  CHECK(f.log().find(":-1:") != std::string::npos); // No listener (-1), then the notice pipe.
  CHECK(f.log().find(" --run-dir " + f.folder.path().string() + "\n") != std::string::npos);
}

TEST_CASE("each start is another incarnation") {
  fixture f{"exit 0"};
  std::uint64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    const auto incarnation = f.start().value;
    CHECK(incarnation != last);
    last = incarnation;
    f.end();
  }
}

TEST_CASE("the end of a process is told as the system told it") {
  fixture f{"exit 7"};
  f.start();
  const auto pid = f.children.pid_of(f.who);
  auto end = f.end();
  CHECK(end.how == process_end::kind::exited);
  CHECK(end.number == 7);
  CHECK(end.pid == pid);
  fixture killed{forever};
  killed.start();
  killed.children.kill(killed.who);
  end = killed.end();
  CHECK(end.how == process_end::kind::signalled);
  CHECK(end.number == SIGKILL);
  killed.children.kill(killed.who); // Nothing runs.
  fixture taken{"exit 7"};
  taken.start();
  REQUIRE(waitpid(*taken.children.pid_of(taken.who), nullptr, 0) > 0);
  const auto events = taken.children.tick();
  REQUIRE(events.size() == 1);
  CHECK(std::get<process_ended>(events[0]).how.how == process_end::kind::unknown);
}

TEST_CASE("what a process told comes before its end") {
  fixture f{tells(word_kind::works) + tells(word_kind::hopeless, "the disk is full") + "exit 1"};
  f.start();
  const auto events = f.events_at_end();
  REQUIRE(events.size() == 3);
  CHECK(std::get<process_word>(events[0]) == process_word{f.who, word_kind::works});
  CHECK(std::get<process_word>(events[1])
        == process_word{f.who, word_kind::hopeless, "the disk is full"});
  CHECK(std::holds_alternative<process_ended>(events[2]));
}

TEST_CASE("last words are lines of this start that can be a reason") {
  fixture f{"echo x >> count; n=$(wc -l < count); echo hello; "
            "[ $n = 1 ] || echo '2026-11-22T22:23:08.123 info server 1: starts, pid 17'; "
            "[ $n != 3 ] || echo '2026-11-22T22:23:08.123 error server 1: no disk'; exit 7"};
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(f.folder.path());
  for (const std::string words : {"hello", "hello", "no disk"}) {
    f.start();
    CHECK(f.end().last_words == words);
  }
  std::filesystem::current_path(before);
  fixture silent{"[ -e said ] && exit 7; touch said; echo earlier; exit 7"};
  std::filesystem::current_path(silent.folder.path());
  silent.start();
  CHECK(silent.end().last_words == "earlier");
  silent.start();
  CHECK(silent.end().last_words.empty());
  std::filesystem::current_path(before);
}

TEST_CASE("a pipe in the place of a log has no last words") {
  fixture f{"log=$(readlink /proc/$$/fd/1); rm $log; mkfifo $log; exit 3"};
  f.start();
  CHECK(f.end().last_words.empty());
  CHECK(std::filesystem::is_fifo(f.log_path()));
}

TEST_CASE("the last words of a large log are its last line") {
  fixture f{"head -c 1000000 /dev/zero | tr '\\0' x; echo; echo the disk is full; exit 3"};
  f.start();
  CHECK(f.end().last_words == "the disk is full");
}

TEST_CASE("a program that is not there is an error at once") {
  fixture f{""};
  auto options = f.options("");
  options.executable = "/nowhere";
  child_processes missing{options};
  CHECK(missing.start(f.who, -1).error()
        == failure{errc::io_failed, "cannot start a process: /nowhere: No such file or directory"});
  CHECK_FALSE(missing.pid_of(f.who));
}

TEST_CASE("a run directory that cannot be written is an error") {
  fixture f{forever};
  std::ofstream{f.folder.path() / "logs"} << "no directory";
  CHECK(f.children.start(f.who, -1).error()
        == failure{errc::io_failed, "cannot write " + f.log_path().string() + ": Not a directory"});
}

TEST_CASE("the inherited descriptor is open in the child, and others are not") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  fixture f{"test -e /proc/$$/fd/" + std::to_string(ends[0]) + " && ! test -e /proc/$$/fd/"
            + std::to_string(ends[1]) + " && echo right"};
  for (int start = 0; start < 2; ++start) {
    REQUIRE(f.children.start(f.who, ends[0]));
    f.end();
  }
  CHECK(f.log() == "right\nright\n");
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("ctrl_c is left to the launcher") {
  fixture f{"kill -INT $$; exit 5"};
  f.start();
  CHECK(f.end().number == 5);
}

TEST_CASE("the destructor leaves nothing running") {
  pid_t pid = 0;
  {
    fixture f{forever};
    f.start();
    pid = *f.children.pid_of(f.who);
    CHECK(::kill(pid, 0) == 0);
  }
  CHECK(::kill(pid, 0) == -1);
  CHECK(errno == ESRCH);
}

} // namespace child_processes_test
