// Tests which processes start again, and which lines their ends make.
#include "actors/protocol/session/process_table.hpp"

#include "doctest/doctest.h"

#include <signal.h>

namespace process_table_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

constexpr process_name server_1{role::server, 1};

process_end exited(int status, std::string words = "") {
  return {1, process_end::kind::exited, status, std::move(words), "the log"};
}
process_end signalled(int number, std::string words = "") {
  return {1, process_end::kind::signalled, number, std::move(words), "the log"};
}

struct fixture {
  explicit fixture(supervision limits = {}) {
    table.add({server_1, "model", limits}, now);
    start();
  }

  /// Starts what is due, and returns how many that are.
  std::size_t start() {
    const auto due = table.take_due(now);
    for (const auto& who : due)
      table.started(who, {++incarnations}, now);
    return due.size();
  }
  std::optional<process_loss> end(const process_end& how) {
    return table.ended(server_1, how, now);
  }
  void tell(word_kind kind, const std::string& text = "") { table.told({server_1, kind, text}); }
  /// Checks that the process is not due before the pause is over, and starts it then.
  void starts_after(std::chrono::milliseconds pause) {
    now += pause - 1ms;
    CHECK(start() == 0);
    now += 1ms;
    CHECK(start() == 1);
  }

  time_point now{0};
  std::uint64_t incarnations = 0;
  process_table table;
};

} // namespace

TEST_CASE("a process that was killed is a loss and starts again at once") {
  fixture f;
  f.now = 50ms;
  REQUIRE(f.table.killed(server_1, f.now));
  f.now = 60ms;
  const auto lost = f.end(signalled(SIGKILL));
  REQUIRE(lost);
  CHECK(lost->member == member_id{role::server, 1, {1}});
  CHECK(lost->killed_at == 50ms);
  CHECK(lost->detected_at == 60ms);
  CHECK(lost->how == "killed by signal 9");
  CHECK(f.start() == 1);
  CHECK(f.table.incarnations().at(server_1) == incarnation_id{2});
}

TEST_CASE("a process whose exit status other code took is a loss and starts again") {
  fixture f;
  const auto lost = f.end({1, process_end::kind::unknown});
  REQUIRE(lost);
  CHECK(lost->how.starts_with("its exit status is lost, as code of the launcher waits"));
  f.starts_after(100ms);
}

TEST_CASE("ends without work are paused ever longer and given up at last") {
  fixture f;
  for (const auto pause : {100ms, 200ms, 400ms, 800ms, 1600ms}) {
    CAPTURE(pause.count());
    const auto lost = f.end(exited(7, "out of luck"));
    REQUIRE(lost);
    CHECK(lost->how == "exit status 7: out of luck");
    CHECK(lost->killed_at == f.now);
    CHECK_FALSE(f.table.failed());
    f.starts_after(pause);
  }
  CHECK(f.end(exited(7, "out of luck")));
  CHECK(f.table.failed().value().text
        == "server 1 ended 6 times in a row before it had done any work (exit status 7): out of "
           "luck");
  f.now += 1h;
  CHECK(f.start() == 0);
}

TEST_CASE("starts that fail are tried ever later, and given up with the reason") {
  fixture f;
  f.tell(word_kind::works);
  f.end(signalled(SIGKILL));
  for (int i = 1; i <= 6; ++i) {
    CHECK_FALSE(f.table.failed());
    REQUIRE(f.table.take_due(f.now).size() == 1);
    f.table.start_failed(server_1, {errc::io_failed, "no memory"}, f.now);
    CHECK(f.table.take_due(f.now).empty());
    f.now += 5s;
  }
  CHECK(f.table.failed().value().text == "server 1 cannot be started again: no memory");
  f.now += 1h;
  CHECK(f.table.take_due(f.now).empty());
}

TEST_CASE(
  "a start that fails after the job has ended, or while the process leaves, is no failure") {
  for (const bool leaves : {false, true}) {
    CAPTURE(leaves);
    fixture f{{.crashes_max = 2}};
    f.end(signalled(SIGKILL));
    f.now += 100ms;
    REQUIRE(f.table.take_due(f.now).size() == 1);
    if (leaves)
      f.table.let_go({server_1});
    else
      f.table.wind_down();
    f.table.start_failed(server_1, {errc::io_failed, "no memory"}, f.now);
    CHECK_FALSE(f.table.failed());
    f.now += 1h;
    CHECK(f.table.take_due(f.now).empty());
  }
}

TEST_CASE("a process without hope is no failure once the job has ended or the process leaves") {
  for (const bool leaves : {false, true}) {
    CAPTURE(leaves);
    fixture f;
    if (leaves)
      f.table.let_go({server_1});
    else
      f.table.wind_down();
    f.tell(word_kind::hopeless, "a disk is full");
    CHECK_FALSE(f.end(exited(1)));
    CHECK_FALSE(f.table.failed());
  }
}

TEST_CASE("crashes after work that are far apart are forgotten, and close ones are not") {
  fixture far;
  for (int i = 0; i < 10; ++i) {
    far.now += 30s;
    far.tell(word_kind::works);
    CHECK(far.end(exited(7)));
    CHECK(far.start() == 1);
  }
  CHECK_FALSE(far.table.failed());
  fixture close;
  for (int i = 0; i < 6; ++i) {
    CHECK_FALSE(close.table.failed());
    close.now += 10s;
    close.tell(word_kind::works);
    CHECK(close.end(exited(7, "out of luck")));
    close.start();
  }
  CHECK(close.table.failed().value().text
        == "server 1 ended 6 times within 120 s (exit status 7): out of luck");
}

TEST_CASE("a process that crashes too often is left out while others of its node are there") {
  const supervision leave{.crashes_max = 2, .then = outcome::leave_out};
  fixture f{leave};
  const process_name second{role::server, 2}, other{role::worker, 0};
  f.table.add({second, "model", leave}, f.now);
  f.table.add({other, "learners", leave}, f.now);
  f.start();
  f.end(exited(7, "out of luck"));
  f.now += 10s;
  f.start();
  f.end(exited(7, "out of luck"));
  CHECK_FALSE(f.table.failed());
  CHECK(f.table.take_lines()
        == std::vector<std::string>{"server 1 ended 2 times in a row before it had done any work "
                                    "(exit status 7): out of luck; the job goes on without it"});
  CHECK(f.table.take_lines().empty());
  CHECK_FALSE(f.table.may_add(server_1)); // It was given up.
  CHECK_FALSE(f.table.may_add(second));
  f.now += 1h;
  CHECK(f.start() == 0);
  f.table.ended(second, exited(7), f.now);
  f.now += 10s;
  f.start();
  f.table.ended(second, exited(7), f.now); // The last one of its node is not left out.
  CHECK(f.table.failed().value().text
        == "server 2 ended 2 times in a row before it had done any work (exit status 7): see the "
           "log");
}

TEST_CASE("a process that says it is hopeless fails the job with its reason") {
  fixture f;
  f.tell(word_kind::hopeless, "the disk is full");
  CHECK_FALSE(f.end(exited(1)));
  CHECK(f.table.failed().value().text == "server 1: the disk is full");
  f.now += 1h;
  CHECK(f.start() == 0);
  fixture named; // A reason that begins with the name needs no other.
  named.tell(word_kind::hopeless, "server 1 is already running elsewhere");
  named.end(exited(1));
  CHECK(named.table.failed().value().text == "server 1 is already running elsewhere");
}

TEST_CASE("a deposed process is a loss with its reason and starts again however often") {
  fixture f;
  for (int i = 0; i < 20; ++i) {
    f.tell(word_kind::deposed, "no longer leads");
    const auto lost = f.end(exited(1));
    REQUIRE(lost);
    CHECK(lost->how == "no longer leads");
    CHECK(lost->deposed);
    REQUIRE(f.start() == 1);
  }
  CHECK_FALSE(f.table.failed());
}

TEST_CASE("no exit status has a meaning of its own") {
  for (const int status : {0, 3, 4}) {
    CAPTURE(status);
    fixture f;
    const auto text = "exit status " + std::to_string(status);
    for (int i = 0; i < 6; ++i) {
      CHECK_FALSE(f.table.failed());
      const auto lost = f.end(exited(status));
      REQUIRE(lost);
      CHECK(lost->how == text + (status == 0 ? " although the job goes on" : "") + ": see the log");
      CHECK_FALSE(lost->deposed);
      f.now += 10s;
      f.start();
    }
    CHECK(f.table.failed().value().text
          == "server 1 ended 6 times in a row before it had done any work (" + text
               + "): see the log");
  }
}

TEST_CASE("kills of a process that has done no work are counted and planned ones are not") {
  fixture f;
  for (int i = 0; i < 6; ++i) {
    CHECK_FALSE(f.table.failed());
    CHECK(f.end(signalled(SIGKILL)));
    f.now += 10s;
    f.start();
  }
  CHECK(f.table.failed().value().text.find("(killed by signal 9 (perhaps out of memory))")
        != std::string::npos);
  fixture planned;
  for (int i = 0; i < 20; ++i) {
    REQUIRE(planned.table.killed(server_1, planned.now));
    CHECK(planned.end(signalled(SIGKILL)));
    CHECK(planned.start() == 1);
  }
  CHECK_FALSE(planned.table.failed());
}

TEST_CASE("the likely cause of a signal is named") {
  const auto how_of = [](process_end end) { return fixture{}.end(end)->how; };
  auto lacking = signalled(SIGKILL);
  lacking.lacked_memory = true;
  CHECK(how_of(lacking) == "killed by signal 9 (out of memory)");
  auto limited = signalled(SIGKILL);
  limited.limits = " (limit: 3 s)";
  CHECK(how_of(limited)
        == "killed by signal 9 (perhaps out of processor time or memory (limit: 3 s))");
  limited.number = SIGXCPU;
  CHECK(how_of(limited)
        == "killed by signal " + std::to_string(SIGXCPU) + " (limit: 3 s): see the log");
  CHECK(how_of(signalled(SIGABRT, "x.cpp:1: Assertion failed."))
        == "killed by signal 6: x.cpp:1: Assertion failed.");
  CHECK(how_of(signalled(SIGABRT)) == "killed by signal 6: see the log");
  CHECK(how_of(signalled(SIGSEGV, "an earlier line")) == "killed by signal 11: see the log");
}

TEST_CASE("a process that was told to end is no loss but starts again if the job goes on") {
  fixture f;
  f.now += 10s;
  f.tell(word_kind::dismissed);
  CHECK_FALSE(f.end(exited(0)));
  f.starts_after(1s);
  for (int i = 0; i < 12; ++i) { // It is put out again and again, and is not given up.
    f.now += 5s;
    f.tell(word_kind::dismissed);
    CHECK_FALSE(f.end(exited(0)));
    f.starts_after(1s);
  }
  CHECK_FALSE(f.table.failed());
}

TEST_CASE("a process that is told to end at once again and again is given up") {
  fixture f;
  for (int i = 0; i < 6; ++i) {
    CHECK_FALSE(f.table.failed());
    f.tell(word_kind::dismissed);
    CHECK_FALSE(f.end(exited(0, "done already")));
    f.now += 1s;
    f.start();
  }
  CHECK(f.table.failed().value().text
        == "server 1 ended 6 times at once, as it was told to (exit status 0): done already");
}

TEST_CASE("a process that leaves the job is not started again whatever its end") {
  for (const auto& how : {exited(0), exited(7), signalled(SIGKILL)}) {
    CAPTURE(how.number);
    fixture f;
    CHECK_FALSE(f.table.may_add(server_1));
    f.table.let_go({server_1});
    CHECK_FALSE(f.table.may_add(server_1));
    CHECK(f.end(how).has_value() == (how.number != 0));
    CHECK(f.table.may_add(server_1));
    f.now += 1h;
    CHECK(f.start() == 0);
    f.table.let_go({});
    f.table.add({server_1, "model"}, f.now);
    CHECK(f.start() == 1);
  }
}

TEST_CASE("a process that leaves while it waits for its next start stays ended") {
  fixture f;
  f.tell(word_kind::dismissed);
  CHECK_FALSE(f.end(exited(0)));
  CHECK_FALSE(f.table.may_add(server_1));
  f.table.let_go({server_1});
  CHECK(f.table.may_add(server_1));
  f.now += 1h;
  CHECK(f.start() == 0);
}

TEST_CASE("after wind_down nothing starts again, also where it waited for its start") {
  fixture f;
  f.table.wind_down();
  CHECK(f.end(exited(7)));
  fixture waiting;
  waiting.tell(word_kind::dismissed);
  waiting.end(exited(0));
  waiting.table.wind_down();
  f.now = waiting.now = 1h;
  CHECK(f.start() == 0);
  CHECK(waiting.start() == 0);
}

TEST_CASE("only what runs can be killed") {
  fixture f;
  f.tell(word_kind::dismissed);
  f.end(exited(0));
  CHECK(f.table.killed(server_1, f.now).error()
        == failure{errc::invalid_argument, "server 1 does not run here"});
}

} // namespace process_table_test
