#include "base/system/signals.hpp"

#include "doctest/doctest.h"

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace signals_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

struct sigaction action_of(int signal) {
  struct sigaction found {};
  sigaction(signal, nullptr, &found);
  return found;
}

} // namespace

TEST_CASE("signals_become_events_in_their_order") {
  signal_watch signals;
  CHECK_FALSE(signals.wait(0ms));
  for (const int number : {SIGINT, SIGTERM, SIGCHLD, SIGINT})
    raise(number);
  for (const int number : {SIGINT, SIGTERM, SIGCHLD, SIGINT})
    CHECK(signals.wait(0ms) == number);
  CHECK_FALSE(signals.wait(1ms));
}

TEST_CASE("a_signal_wakes_the_waiting_thread_whichever_thread_gets_it") {
  signal_watch signals;
  const auto waiting = pthread_self();
  SUBCASE("the waiting one") {
    std::thread other{[&] { pthread_kill(waiting, SIGTERM); }};
    CHECK(signals.wait(10s) == SIGTERM);
    other.join();
  }
  SUBCASE("another one") {
    std::thread other{[] { raise(SIGTERM); }};
    CHECK(signals.wait(10s) == SIGTERM);
    other.join();
  }
}

TEST_CASE("a_forked_child_ends_by_a_signal_and_stops_nothing_else") {
  signal_watch signals;
  const pid_t child = fork();
  if (child == 0)
    for (;;)
      pause();
  kill(child, SIGTERM);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
  CHECK(signal_watch::stops().count == 0);
  CHECK(signals.wait(0ms) == SIGCHLD);
  CHECK_FALSE(signals.wait(0ms));
}

TEST_CASE("more_signals_than_a_pipe_holds_do_no_harm") {
  signal_watch signals;
  for (int i = 0; i < 100'000; ++i)
    raise(SIGCHLD);
  int count = 0;
  while (signals.wait(0ms) == SIGCHLD)
    ++count;
  CHECK(count > 0);
}

TEST_CASE("a_timer_that_interrupts_each_wait_does_not_lengthen_it") {
  struct sigaction before {
  }, counting{};
  counting.sa_handler = [](int) {};
  sigaction(SIGALRM, &counting, &before);
  const itimerval each_ms{{0, 1000}, {0, 1000}}, never{};
  setitimer(ITIMER_REAL, &each_ms, nullptr);
  {
    signal_watch signals;
    const auto begun = std::chrono::steady_clock::now();
    std::thread ends_a_longer_wait{[] {
      std::this_thread::sleep_for(2s);
      raise(SIGTERM);
    }};
    CHECK_FALSE(signals.wait(50ms));
    CHECK(std::chrono::steady_clock::now() - begun >= 50ms);
    CHECK(std::chrono::steady_clock::now() - begun < 1s);
    CHECK(signals.wait(10s) == SIGTERM);
    ends_a_longer_wait.join();
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
}

TEST_CASE("requests_to_end_are_counted_and_other_signals_are_not") {
  signal_watch signals;
  CHECK(signal_watch::stops().count == 0);
  for (const int number : {SIGINT, SIGCHLD, SIGTERM, SIGCHLD})
    raise(number);
  CHECK(signal_watch::stops().count == 2);
  CHECK(signal_watch::stops().last == SIGTERM);
}

TEST_CASE("a_signal_that_is_sent_again_at_once_is_one_request") {
  signal_watch signals;
  for (int i = 0; i < 3; ++i) // As timeout(1) does: to the process, and to its group.
    raise(SIGTERM);
  CHECK(signal_watch::stops().count == 1);
  CHECK(signals.wait(0ms) == SIGTERM);
  CHECK_FALSE(signals.wait(120ms));
  raise(SIGTERM);
  CHECK(signal_watch::stops().count == 2);
  CHECK(signals.wait(0ms) == SIGTERM);
}

TEST_CASE("handlers_that_other_code_replaced_are_set_again") {
  {
    signal_watch signals;
    signal(SIGTERM, SIG_IGN);
    signal_watch::renew();
    raise(SIGTERM);
    CHECK(signals.wait(0ms) == SIGTERM);
  }
  const auto before = action_of(SIGTERM);
  signal_watch::renew(); // No signal_watch is left.
  CHECK((action_of(SIGTERM).sa_handler == before.sa_handler));
}

TEST_CASE("the_handlers_found_are_restored") {
  const auto found = action_of(SIGINT);
  {
    signal_watch signals;
    CHECK((action_of(SIGINT).sa_handler != found.sa_handler));
  }
  CHECK((action_of(SIGINT).sa_handler == found.sa_handler));
}

TEST_CASE("signals_that_were_ignored_stay_ignored") {
  const auto before = signal(SIGTERM, SIG_IGN);
  const auto before_of_children = signal(SIGCHLD, SIG_IGN);
  {
    signal_watch signals;
    CHECK((action_of(SIGTERM).sa_handler == SIG_IGN));
    CHECK((action_of(SIGCHLD).sa_handler != SIG_IGN)); // Otherwise waitpid() finds no child.
    raise(SIGTERM);
    CHECK_FALSE(signals.wait(0ms));
  }
  CHECK((action_of(SIGTERM).sa_handler == SIG_IGN));
  signal(SIGTERM, before);
  signal(SIGCHLD, before_of_children);
}

} // namespace signals_test
