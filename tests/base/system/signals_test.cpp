#include "base/system/signals.hpp"

#include "doctest/doctest.h"

#include <signal.h>

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

TEST_CASE("more_signals_than_a_pipe_holds_do_no_harm") {
  signal_watch signals;
  for (int i = 0; i < 100'000; ++i)
    raise(SIGCHLD);
  int count = 0;
  while (signals.wait(0ms) == SIGCHLD)
    ++count;
  CHECK(count > 0);
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
