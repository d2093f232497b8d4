#include "actors/graph/launch/end_deadline.hpp"
#include "actors/protocol/session/session.hpp"

#include "doctest/doctest.h"

#include <signal.h>

namespace end_deadline_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

end_deadline deadline_of_run() {
  end_deadline made;
  made.run_begins();
  return made;
}

} // namespace

TEST_CASE("before_a_run_a_signal_ends_the_process_at_once") {
  end_deadline end;
  end.signalled(0, 0, 1s);
  CHECK_FALSE(end.look(true, 1000h));
  end.signalled(1, SIGTERM, 1000h);
  CHECK(end.look(true, 1000h) == 143);
}

TEST_CASE("without_a_signal_a_run_takes_its_time") {
  auto end = deadline_of_run();
  end.signalled(0, 0, 1s);
  for (const bool calls_open : {true, false})
    CHECK_FALSE(end.look(calls_open, 1000h));
}

TEST_CASE("one_signal_ends_the_process_within_30_s") {
  auto end = deadline_of_run();
  for (auto now = 5s; now < 30s; ++now) { // It is told again and again.
    end.signalled(1, SIGTERM, now);
    CHECK_FALSE(end.look(true, now));
  }
  CHECK(end.look(false, 30s) == 143);
}

TEST_CASE("two_signals_end_it_within_1_s") {
  auto end = deadline_of_run();
  end.signalled(1, SIGTERM, 5s);
  end.signalled(2, SIGINT, 8s);
  CHECK_FALSE(end.look(true, 8s));
  CHECK(end.look(true, 8s + end_deadline::after_second) == 130);
  CHECK(end_deadline::after_second < 1s);
}

TEST_CASE("two_signals_at_once_end_it_within_1_s") {
  auto end = deadline_of_run();
  end.signalled(2, SIGTERM, 8s);
  CHECK(end.look(true, 9s) == 143);
}

TEST_CASE("a_run_with_a_result_waits_5_s_for_open_calls_and_has_its_own_status") {
  auto end = deadline_of_run();
  end.over(1, 100s);
  CHECK_FALSE(end.look(true, 104'999ms));
  CHECK(end.look(true, 105s) == 1);
  CHECK_FALSE(end.look(false, 200s));
  end.signalled(1, SIGTERM, 200s);
  end.signalled(2, SIGTERM, 201s);
  CHECK(end.look(false, 202s) == 1);
}

TEST_CASE("the_last_checkpoint_has_its_time_before_the_process_has_to_end") {
  CHECK(last_checkpoint_max + end_deadline::after_result <= end_deadline::after_signal);
}

} // namespace end_deadline_test
