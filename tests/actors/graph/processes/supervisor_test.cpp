// Tests the supervisor with shells as children, under the test's clock.
#include "actors/graph/processes/supervisor.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace supervisor_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

constexpr auto forever = "exec sleep 1000";

/// Returns a shell command that sends the launcher a notice of server 1. `--child` is $0.
std::string tells(notice_kind kind, const std::string& text = "") {
  auto line = encode({{role::server, 1}, kind, {}, text});
  line.pop_back();
  return "echo '" + line + "' > /proc/$$/fd/${1##*:}; ";
}

struct fixture {
  explicit fixture(const std::string& script) : supervise(options(script)) {}

  supervisor_options options(const std::string& script) const {
    supervisor_options made;
    made.executable = "/bin/sh";
    made.command = {"sh", "-c", script};
    made.run_directory = folder.path();
    return made;
  }

  void start() { REQUIRE(supervise.start(who, -1, now)); }

  /// Waits until the process has ended, then lets the supervisor see it.
  std::vector<supervisor::loss> tick_at_end() {
    const auto pid = supervise.pid_of(who);
    REQUIRE(pid);
    siginfo_t unused{};
    REQUIRE(waitid(P_PID, static_cast<id_t>(*pid), &unused, WEXITED | WNOWAIT) == 0);
    return supervise.tick(now);
  }

  /// Checks that the process is not started again before the pause is over. Returns whether it runs
  /// then.
  bool starts_after(std::chrono::milliseconds pause) {
    now += pause - 1ms;
    CHECK(supervise.tick(now).empty());
    CHECK(supervise.running() == 0);
    now += 1ms;
    CHECK(supervise.tick(now).empty());
    return supervise.running() == 1;
  }

  std::filesystem::path log_path() const { return folder.path() / "logs" / "server-1.log"; }
  std::string log() const {
    std::stringstream text;
    text << std::ifstream{log_path()}.rdbuf();
    return text.str();
  }

  /// Makes logs impossible to open, even for root.
  void block_log() const {
    std::filesystem::rename(folder.path() / "logs", folder.path() / "away");
    std::ofstream{folder.path() / "logs"} << "no directory";
  }
  /// Kills the process while no other one can be started.
  void kill_and_block() {
    start();
    block_log();
    REQUIRE(supervise.kill(who, now));
    CHECK(tick_at_end().size() == 1);
  }
  void unblock_log() const {
    std::filesystem::remove(folder.path() / "logs");
    std::filesystem::rename(folder.path() / "away", folder.path() / "logs");
  }

  storage::temporary_directory folder;
  process_name who{role::server, 1};
  std::chrono::nanoseconds now{0};
  supervisor supervise;
};

} // namespace

TEST_CASE("a_process_runs_with_its_identity_and_its_output_in_a_log") {
  fixture f{"echo $0 $1 $2 $3; exec sleep 1000"};
  f.start();
  CHECK(f.supervise.running() == 1);
  CHECK(f.supervise.tick(f.now).empty());
  while (f.log().find('\n') == std::string::npos)
    ; // The process writes soon.
  CHECK(f.log().find("--child 1:1:") == 0);
  CHECK(f.log().find(":-1:") != std::string::npos); // No listener (-1), then the notice pipe.
  CHECK(f.log().find(" --run-dir " + f.folder.path().string() + "\n") != std::string::npos);
}

TEST_CASE("a_killed_process_is_a_loss_and_starts_again_at_once") {
  fixture f{forever};
  f.start();
  const auto first = *f.supervise.pid_of(f.who);
  f.now = 50ms;
  REQUIRE(f.supervise.kill(f.who, f.now));
  f.now = 60ms;
  const auto losses = f.tick_at_end();
  REQUIRE(losses.size() == 1);
  CHECK(losses[0].member.role == role::server);
  CHECK(losses[0].member.index == 1);
  CHECK(losses[0].killed_at == 50ms);
  CHECK(losses[0].detected_at == 60ms);
  CHECK(losses[0].how == "killed by signal 9");
  REQUIRE(f.supervise.pid_of(f.who));
  CHECK(*f.supervise.pid_of(f.who) != first);
}

TEST_CASE("a_process_whose_exit_status_other_code_took_is_a_loss_and_starts_again") {
  fixture f{forever};
  f.start();
  const auto first = *f.supervise.pid_of(f.who);
  ::kill(first, SIGKILL);
  REQUIRE(waitpid(first, nullptr, 0) == first);
  const auto losses = f.supervise.tick(f.now);
  REQUIRE(losses.size() == 1);
  CHECK(losses[0].how.starts_with("its exit status is lost, as code of the launcher waits"));
  f.now += 10s;
  CHECK(f.supervise.tick(f.now).empty());
  REQUIRE(f.supervise.pid_of(f.who));
  CHECK(*f.supervise.pid_of(f.who) != first);
}

TEST_CASE("a_process_that_runs_is_not_started_again") {
  fixture f{forever};
  f.start();
  const auto pid = f.supervise.pid_of(f.who);
  CHECK(f.supervise.start(f.who, -1, f.now).error()
        == failure{errc::invalid_argument, "server 1 runs already"});
  CHECK(f.supervise.pid_of(f.who) == pid);
}

TEST_CASE("each_start_is_another_incarnation") {
  fixture f{forever};
  f.start();
  std::uint64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(f.supervise.kill(f.who, f.now));
    const auto losses = f.tick_at_end();
    REQUIRE(losses.size() == 1);
    CHECK(losses[0].member.incarnation.value != last);
    last = losses[0].member.incarnation.value;
  }
}

TEST_CASE("ends_without_work_are_paused_ever_longer_and_given_up_at_last") {
  fixture f{"echo out of luck; exit 7"};
  f.start();
  for (const auto pause : {100ms, 200ms, 400ms, 800ms, 1600ms}) {
    CAPTURE(pause.count());
    const auto losses = f.tick_at_end();
    REQUIRE(losses.size() == 1);
    CHECK(losses[0].how == "exit status 7: out of luck");
    CHECK(losses[0].killed_at == f.now);
    CHECK_FALSE(f.supervise.failed());
    CHECK(f.starts_after(pause));
  }
  CHECK(f.tick_at_end().size() == 1);
  CHECK(f.supervise.failed().value().text
        == "server 1 ended 6 times in a row before it had done any work (exit status 7): out of "
           "luck");
  f.now += 1h;
  CHECK(f.supervise.tick(f.now).empty());
  CHECK(f.supervise.running() == 0);
}

TEST_CASE("a_start_that_fails_is_tried_again_ever_later") {
  fixture f{forever};
  f.kill_and_block();
  CHECK_FALSE(f.starts_after(100ms));
  CHECK_FALSE(f.starts_after(200ms));
  f.unblock_log();
  CHECK(f.starts_after(400ms));
  CHECK_FALSE(f.supervise.failed());
}

TEST_CASE("starts_that_fail_again_and_again_are_given_up_with_the_reason") {
  fixture f{forever};
  f.kill_and_block();
  for (int i = 1; i < 6; ++i) {
    CHECK_FALSE(f.supervise.failed());
    f.now += 5s;
    CHECK(f.supervise.tick(f.now).empty());
  }
  CHECK(f.supervise.failed().value().text
        == "server 1 cannot be started again: cannot write "
             + (f.folder.path() / "logs" / "server-1.log").string() + ": Not a directory");
  f.unblock_log();
  f.now += 1h;
  CHECK(f.supervise.tick(f.now).empty());
  CHECK(f.supervise.running() == 0);
}

TEST_CASE("crashes_after_work_that_are_far_apart_are_forgotten") {
  fixture f{tells(notice_kind::works) + "exit 7"};
  f.start();
  for (int i = 0; i < 10; ++i) {
    f.now += 30s;
    CHECK(f.tick_at_end().size() == 1);
    CHECK(f.supervise.running() == 1);
  }
  CHECK_FALSE(f.supervise.failed());
}

TEST_CASE("a_process_that_crashes_again_and_again_after_work_is_given_up") {
  fixture f{tells(notice_kind::works) + "echo out of luck; exit 7"};
  f.start();
  for (int i = 0; i < 6; ++i) {
    CHECK_FALSE(f.supervise.failed());
    f.now += 10s;
    CHECK(f.tick_at_end().size() == 1);
  }
  CHECK(f.supervise.failed().value().text
        == "server 1 ended 6 times within 120 s (exit status 7): out of luck");
}

TEST_CASE("a_process_that_crashes_too_often_is_left_out_while_others_of_its_role_are_there") {
  fixture f{""};
  const auto go = f.folder.path() / "go"; // Server 2 lives until this file is there.
  auto options = f.options("case $1 in ?:2:*) while [ ! -e " + go.string()
                           + " ]; do sleep 0.01; done;; esac; echo out of luck; exit 7");
  options.on_death = {{role::server, {.crashes_max = 2, .then = outcome::leave_out}}};
  supervisor supervise{options};
  REQUIRE(supervise.start({role::server, 1}, -1, f.now));
  REQUIRE(supervise.start({role::server, 2}, -1, f.now));
  const auto end = [&](std::uint32_t index) {
    f.now += 10s;
    const auto pid = supervise.pid_of({role::server, index});
    REQUIRE(pid);
    siginfo_t unused{};
    REQUIRE(waitid(P_PID, static_cast<id_t>(*pid), &unused, WEXITED | WNOWAIT) == 0);
    supervise.tick(f.now);
  };
  end(1);
  supervise.tick(f.now += 10s); // Its pause is over.
  end(1);
  CHECK_FALSE(supervise.failed());
  CHECK(supervise.notices(f.now)
        == std::vector<std::string>{"server 1 ended 2 times in a row before it had done any work "
                                    "(exit status 7): out of luck; the job goes on without it"});
  CHECK_FALSE(supervise.is_kept({role::server, 1}));
  CHECK(supervise.is_kept({role::server, 2}));
  f.now += 1h;
  supervise.tick(f.now);
  std::ofstream{go} << "go";
  end(2);
  CHECK_FALSE(supervise.failed());
  supervise.tick(f.now += 10s);
  end(2); // The last one of its role is not left out.
  CHECK(supervise.failed().value().text
        == "server 2 ended 2 times in a row before it had done any work (exit status 7): out of "
           "luck");
}

TEST_CASE("a_process_that_says_it_is_hopeless_fails_the_job_with_its_reason") {
  fixture f{tells(notice_kind::hopeless, "the disk is full") + "exit 1"};
  f.start();
  CHECK(f.tick_at_end().empty());
  CHECK(f.supervise.failed().value().text == "server 1: the disk is full");
  f.now += 1h;
  CHECK(f.supervise.tick(f.now).empty());
  CHECK(f.supervise.running() == 0);
}

TEST_CASE("a_reason_that_begins_with_the_name_needs_no_other") {
  fixture f{tells(notice_kind::hopeless, "server 1 is already running elsewhere") + "exit 1"};
  f.start();
  CHECK(f.tick_at_end().empty());
  CHECK(f.supervise.failed().value().text == "server 1 is already running elsewhere");
}

TEST_CASE("a_deposed_process_is_a_loss_with_its_reason_and_starts_again_however_often") {
  fixture f{tells(notice_kind::deposed, "no longer leads") + "exit 1"};
  f.start();
  for (int i = 0; i < 20; ++i) {
    const auto losses = f.tick_at_end();
    REQUIRE(losses.size() == 1);
    CHECK(losses.front().how == "no longer leads");
    CHECK(losses.front().deposed);
    REQUIRE(f.supervise.running() == 1);
  }
  CHECK_FALSE(f.supervise.failed());
}

TEST_CASE("no_exit_status_has_a_meaning_of_its_own") {
  for (const std::string status : {"0", "3", "4"}) {
    CAPTURE(status);
    fixture f{"exit " + status};
    f.start();
    for (int i = 0; i < 6; ++i) {
      CHECK_FALSE(f.supervise.failed());
      const auto losses = f.tick_at_end();
      REQUIRE(losses.size() == 1);
      CHECK(losses[0].how
            == "exit status " + status + (status == "0" ? " although the job goes on" : "")
                 + ": see " + f.log_path().string());
      CHECK_FALSE(losses[0].deposed);
      f.now += 10s;
      f.supervise.tick(f.now);
    }
    CHECK(f.supervise.failed().value().text
          == "server 1 ended 6 times in a row before it had done any work (exit status " + status
               + "): see " + f.log_path().string());
  }
}

TEST_CASE("kills_of_a_process_that_has_done_no_work_are_counted_and_planned_ones_are_not") {
  fixture f{"sleep 0.01; kill -9 $$"};
  f.start();
  for (int i = 0; i < 6; ++i) {
    CHECK_FALSE(f.supervise.failed());
    f.now += 3s;
    CHECK(f.tick_at_end().size() == 1);
    f.now += 10s;
    f.supervise.tick(f.now);
  }
  REQUIRE(f.supervise.failed());
  CHECK(f.supervise.failed()->text.find(
          "6 times in a row before it had done any work (killed by signal 9")
        != std::string::npos);
  fixture planned{forever};
  planned.start();
  for (int i = 0; i < 20; ++i) {
    REQUIRE(planned.supervise.kill(planned.who, planned.now));
    CHECK(planned.tick_at_end().size() == 1);
  }
  CHECK_FALSE(planned.supervise.failed());
}

TEST_CASE("last_words_are_lines_of_this_start_that_can_be_a_reason") {
  fixture f{"echo x >> count; n=$(wc -l < count); echo hello; "
            "[ $n = 1 ] || echo '2026-11-22T22:23:08.123 info server 1: starts, pid 17'; "
            "[ $n != 3 ] || echo '2026-11-22T22:23:08.123 error server 1: no disk'; exit 7"};
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(f.folder.path());
  f.start();
  for (const std::string words : {"hello", "hello", "no disk"}) {
    const auto losses = f.tick_at_end();
    REQUIRE(losses.size() == 1);
    CHECK(losses[0].how == "exit status 7: " + words);
    f.now += 10s;
    f.supervise.tick(f.now);
  }
  std::filesystem::current_path(before);
  fixture silent{"[ -e said ] && exit 7; touch said; echo earlier; exit 7"};
  std::filesystem::current_path(silent.folder.path());
  silent.start();
  CHECK(silent.tick_at_end().front().how == "exit status 7: earlier");
  silent.now += 10s;
  silent.supervise.tick(silent.now);
  CHECK(silent.tick_at_end().front().how == "exit status 7: see " + silent.log_path().string());
  std::filesystem::current_path(before);
}

TEST_CASE("a_pipe_in_the_place_of_a_log_has_no_last_words") {
  fixture f{"log=$(readlink /proc/$$/fd/1); rm $log; mkfifo $log; exit 3"};
  f.start();
  CHECK(f.tick_at_end().front().how == "exit status 3: see " + f.log_path().string());
  CHECK(std::filesystem::is_fifo(f.log_path()));
}

TEST_CASE("the_last_words_of_a_large_log_are_its_last_line") {
  fixture f{"head -c 1000000 /dev/zero | tr '\\0' x; echo; echo the disk is full; exit 3"};
  f.start();
  CHECK(f.tick_at_end().front().how == "exit status 3: the disk is full");
}

TEST_CASE("an_abort_has_the_line_in_front_of_it_as_reason") {
  fixture f{"echo 'x.cpp:1: Assertion failed.'; kill -ABRT $$"};
  f.start();
  CHECK(f.tick_at_end().front().how == "killed by signal 6: x.cpp:1: Assertion failed.");
}

TEST_CASE("a_signal_without_last_words_names_the_log") {
  for (const std::string script : {"kill -ABRT $$", "echo 'an earlier line'; kill -SEGV $$"}) {
    CAPTURE(script);
    fixture f{script};
    f.start();
    CHECK(f.tick_at_end().front().how.ends_with(": see " + f.log_path().string()));
  }
}

TEST_CASE("a_process_that_was_told_to_end_is_no_loss_but_starts_again_if_the_job_goes_on") {
  fixture f{tells(notice_kind::dismissed) + "exit 0"};
  f.start();
  f.now += 10s;
  CHECK(f.tick_at_end().empty());
  CHECK(f.starts_after(1s));
  CHECK_FALSE(f.supervise.failed());
}

TEST_CASE("a_process_that_is_told_to_end_at_once_again_and_again_is_given_up") {
  fixture f{tells(notice_kind::dismissed) + "echo done already"};
  f.start();
  for (int i = 0; i < 6; ++i) {
    CHECK_FALSE(f.supervise.failed());
    CHECK(f.tick_at_end().empty());
    f.now += 1s;
    f.supervise.tick(f.now);
  }
  CHECK(f.supervise.failed().value().text
        == "server 1 ended 6 times at once, as it was told to (exit status 0): done already");
}

TEST_CASE("a_process_that_is_put_out_again_and_again_is_not_given_up") {
  fixture f{tells(notice_kind::dismissed) + "exit 0"};
  f.start();
  for (int i = 0; i < 12; ++i) {
    f.now += 5s;
    CHECK(f.tick_at_end().empty());
    f.now += 1s;
    CHECK(f.supervise.tick(f.now).empty());
    REQUIRE(f.supervise.running() == 1);
  }
  CHECK_FALSE(f.supervise.failed());
}

TEST_CASE("who_leaves_the_job_is_not_started_again_whatever_its_end") {
  for (const std::string script : {"exit 0", "exit 7", forever}) {
    CAPTURE(script);
    fixture f{script};
    f.start();
    CHECK(f.supervise.is_kept(f.who));
    f.supervise.let_go({f.who});
    CHECK(f.supervise.is_kept(f.who));
    if (script == forever)
      REQUIRE(f.supervise.kill(f.who, f.now));
    CHECK(f.tick_at_end().size() == (script == "exit 0" ? 0 : 1));
    CHECK_FALSE(f.supervise.is_kept(f.who));
    f.now += 1h;
    CHECK(f.supervise.tick(f.now).empty());
    CHECK(f.supervise.running() == 0);
    f.supervise.let_go({});
    f.start();
    CHECK(f.supervise.running() == 1);
  }
}

TEST_CASE("who_leaves_while_it_waits_for_its_next_start_stays_ended") {
  fixture f{tells(notice_kind::dismissed) + "exit 0"};
  f.start();
  CHECK(f.tick_at_end().empty());
  CHECK(f.supervise.is_kept(f.who));
  f.supervise.let_go({f.who});
  f.now += 1h;
  CHECK(f.supervise.tick(f.now).empty());
  CHECK_FALSE(f.supervise.is_kept(f.who));
}

TEST_CASE("a_process_that_ended_with_the_job_stays_ended") {
  fixture f{tells(notice_kind::dismissed) + "exit 0"};
  f.start();
  CHECK(f.tick_at_end().empty());
  f.supervise.wind_down();
  f.now += 1h;
  CHECK(f.supervise.tick(f.now).empty());
  CHECK(f.supervise.running() == 0);
}

TEST_CASE("after_wind_down_nothing_starts_again") {
  fixture f{"exit 7"};
  f.start();
  f.supervise.wind_down();
  CHECK(f.tick_at_end().size() == 1);
  f.now += 1h;
  CHECK(f.supervise.tick(f.now).empty());
  CHECK(f.supervise.running() == 0);
}

TEST_CASE("a_program_that_is_not_there_is_told_at_once") {
  fixture f{""};
  auto options = f.options("");
  options.executable = "/nowhere";
  supervisor missing{options};
  CHECK(missing.start(f.who, -1, f.now).error()
        == failure{errc::io_failed, "cannot start a process: /nowhere: No such file or directory"});
  CHECK(missing.running() == 0);
}

TEST_CASE("only_what_runs_can_be_killed") {
  fixture f{tells(notice_kind::dismissed) + "exit 0"};
  CHECK(f.supervise.kill(f.who, f.now).error()
        == failure{errc::invalid_argument, "server 1 does not run here"});
  f.start();
  CHECK(f.tick_at_end().empty());
  CHECK_FALSE(f.supervise.kill(f.who, f.now));
}

TEST_CASE("a_run_directory_that_cannot_be_written_is_an_error") {
  fixture f{forever};
  std::ofstream{f.folder.path() / "logs"} << "no directory";
  const auto started = f.supervise.start(f.who, -1, f.now);
  REQUIRE_FALSE(started);
  CHECK(started.error().code == errc::io_failed);
}

TEST_CASE("the_inherited_descriptor_is_open_in_the_child_and_others_are_not") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  fixture f{tells(notice_kind::dismissed) + "test -e /proc/$$/fd/" + std::to_string(ends[0])
            + " && ! test -e /proc/$$/fd/" + std::to_string(ends[1]) + " && echo right"};
  for (int start = 0; start < 2; ++start) {
    REQUIRE(f.supervise.start(f.who, ends[0], f.now));
    CHECK(f.tick_at_end().empty());
  }
  CHECK(f.log() == "right\nright\n");
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("ctrl_c_is_left_to_the_launcher") {
  fixture f{tells(notice_kind::dismissed) + "kill -INT $$; exit 0"};
  f.start();
  CHECK(f.tick_at_end().empty());
}

TEST_CASE("the_destructor_leaves_nothing_running") {
  pid_t pid = 0;
  {
    fixture f{forever};
    f.start();
    pid = *f.supervise.pid_of(f.who);
    CHECK(::kill(pid, 0) == 0);
  }
  CHECK(::kill(pid, 0) == -1);
  CHECK(errno == ESRCH);
}

} // namespace supervisor_test
