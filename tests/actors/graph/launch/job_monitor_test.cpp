// Tests the launcher's decisions. The test plays the coordinator, the processes, the evaluator and
// the clock.
#include "actors/graph/launch/job_monitor.hpp"

#include "doctest/doctest.h"

namespace job_monitor_test {

using namespace troupe;
using namespace std::chrono_literals;
using standing = job_monitor::standing;

namespace {

using job_events = std::vector<job_event>;

struct fixture {
  explicit fixture(watch_options options = {false, true, 10, "1.2.3.4:5"}) : watch(options, 0s) {}

  watch_decision follow() {
    ++news.sequence;
    return watch.follow(news, now);
  }
  watch_decision follow(job_phase phase) {
    news.desired_state.phase = phase;
    return follow();
  }
  void tell(const std::string& text) {
    news.desired_state.events.push_back(note_of(text));
    ++news.desired_state.events_total;
  }

  std::chrono::nanoseconds now{0};
  job_update news{{}, 1, false, {}, 0};
  job_monitor watch;
};

supervisor::loss loss_of(role what, std::uint32_t index, std::uint64_t incarnation = 1) {
  return {{what, index, {incarnation}}, 0, 0s, 0s, "killed by signal 9"};
}

job_events lost(const std::string& member) {
  return {{event_kind::process_ended, {{"member", member}, {"reason", "killed by signal 9"}}}};
}

} // namespace

TEST_CASE("a_job_that_ends_well_is_judged_then_done_then_over") {
  fixture f;
  CHECK(f.follow().events.empty());
  CHECK_FALSE(f.watch.training_since());
  f.now = 1s;
  CHECK_FALSE(f.follow(job_phase::training).evaluate);
  CHECK(f.watch.training_since() == 1s);
  f.news.desired_state.batches_done = 20;
  CHECK(f.follow(job_phase::finished).evaluate == 2);
  CHECK_FALSE(f.watch.report().done);
  CHECK(f.watch.on_evaluated({}));
  CHECK(f.watch.report().done);
  f.news.stop = true;
  CHECK(f.follow(job_phase::stopped).wind_down);
  CHECK_FALSE(f.follow().wind_down);
  CHECK(f.watch.look(f.now, 1) == standing::running);
  CHECK(f.watch.look(f.now, 0) == standing::over);
  CHECK(f.watch.exit_status() == 0);
}

TEST_CASE("processes_that_do_not_end_by_themselves_are_waited_for_5_s") {
  fixture f;
  f.news.stop = true;
  f.follow(job_phase::stopped);
  CHECK(f.watch.look(5s, 3) == standing::running);
  CHECK(f.watch.look(5001ms, 3) == standing::over);
}

TEST_CASE("one_judgement_at_a_time_is_asked_for_and_the_last_one_once") {
  fixture f;
  f.news.desired_state.batches_done = 10;
  CHECK(f.follow(job_phase::training).evaluate == 1);
  f.news.desired_state.batches_done = 20;
  CHECK_FALSE(f.follow().evaluate); // The first evaluation still runs.
  f.news.desired_state.batches_done = 30;
  CHECK_FALSE(f.watch.on_evaluated({}));
  CHECK(f.follow().evaluate == 3);
  CHECK_FALSE(f.watch.on_evaluated(
    failure{errc::job_failed, "no answer"})); // The next pass is evaluated all the same.
  CHECK_FALSE(f.follow().evaluate);
  CHECK(f.follow(job_phase::finished).evaluate == 3);
  CHECK(f.watch.on_evaluated({}));
  CHECK_FALSE(f.follow().evaluate);
}

TEST_CASE("without_an_evaluator_only_the_end_is_judged") {
  fixture f{{false, false, 10, ""}};
  f.news.desired_state.batches_done = 15;
  CHECK_FALSE(f.follow(job_phase::training).evaluate);
  CHECK(f.follow(job_phase::finished).evaluate == 1);
}

TEST_CASE("a_last_judgement_that_fails_is_a_failure_and_ends_the_job") {
  fixture f;
  f.follow(job_phase::finished);
  CHECK(f.watch.on_evaluated(failure{errc::job_failed, "out of memory"}));
  CHECK(f.watch.report().done);
  CHECK(f.watch.failure().value().text
        == "trained, but the final parameters were not evaluated: out of memory");
  CHECK(f.watch.exit_status() == 1);
}

TEST_CASE("a_request_to_stop_a_job_that_is_done_changes_no_status_but_a_second_one_does") {
  fixture f;
  f.follow(job_phase::finished);
  CHECK(f.watch.on_evaluated({}));
  f.watch.stop(15, f.now);
  CHECK(f.watch.exit_status() == 0);
  f.watch.stop(15, f.now);
  CHECK(f.watch.exit_status() == 143);
}

TEST_CASE("each_event_is_shown_once_also_those_of_a_new_coordinator") {
  fixture f;
  f.tell("one");
  f.tell("two");
  CHECK(f.follow().events == job_events{note_of("one"), note_of("two")});
  CHECK(f.follow().events.empty());
  f.tell("three");
  f.news.desired_state.events.erase(f.news.desired_state.events.begin());
  CHECK(f.follow().events == job_events{note_of("three")});
  f.news.desired_state.events = {note_of("nine"), note_of("ten")}; // Some were missed.
  f.news.desired_state.events_total = 10;
  CHECK(f.follow().events == job_events{note_of("nine"), note_of("ten")});
  f.news.term = 2;
  f.news.desired_state.events = {note_of("one again")};
  f.news.desired_state.events_total = 1;
  CHECK(f.follow().events == job_events{note_of("one again")});
}

TEST_CASE("a_lost_member_is_shown_and_reported") {
  fixture f;
  CHECK(f.watch.process_lost(loss_of(role::worker, 3)).events == lost("worker 3"));
  REQUIRE(f.watch.report().deaths.size() == 1);
  CHECK(f.watch.report().deaths[0].member == member_id{role::worker, 3, {1}});
}

TEST_CASE("of_many_deaths_the_last_64_are_reported") {
  fixture f;
  for (std::uint64_t i = 1; i <= 100; ++i)
    f.watch.process_lost(loss_of(role::server, 0, i));
  REQUIRE(f.watch.report().deaths.size() == 64);
  CHECK(f.watch.report().deaths.back().member.incarnation.value == 100);
}

TEST_CASE("a_lost_coordinator_is_back_when_a_newer_one_has_gathered_its_members") {
  fixture f;
  f.follow(job_phase::training);
  f.watch.process_lost(loss_of(role::coordinator, 0));
  CHECK(f.watch.report().deaths.empty());
  CHECK_FALSE(f.follow().coordinator_back); // The lost coordinator's last message is late.
  f.news.term = 2;
  CHECK_FALSE(f.follow(job_phase::gathering).coordinator_back);
  const auto what = f.follow(job_phase::training);
  CHECK(what.coordinator_back);
  CHECK(what.events == job_events{{event_kind::coordinator_back, {}}});
  CHECK_FALSE(f.follow().coordinator_back);
}

TEST_CASE("where_a_standby_is_lost_the_coordinator_was_there_all_the_time") {
  fixture f;
  f.follow(job_phase::training);
  f.now = 1s;
  f.watch.process_lost({{role::coordinator, 1, {5}}, 0, 1s, 1s, "killed by signal 9"});
  f.now = 1500ms;
  CHECK_FALSE(f.follow().coordinator_back); // It may be the lost one's last message.
  f.now = 1501ms;
  CHECK_FALSE(f.watch.follow(f.news, f.now).coordinator_back); // The same message again.
  const auto what = f.follow();
  CHECK(what.coordinator_back);
  CHECK(what.events.empty());
  f.news.term = 2;
  CHECK_FALSE(f.follow().coordinator_back);
}

TEST_CASE("a_lost_standby_is_called_one") {
  fixture f;
  f.news.desired_state.members.emplace_back();
  f.news.desired_state.coordinator = 1;
  f.follow(job_phase::training);
  CHECK(f.watch.process_lost(loss_of(role::coordinator, 0)).events
        == lost("standby coordinator 0"));
  CHECK(f.watch.process_lost(loss_of(role::coordinator, 1)).events == lost("coordinator 1"));
  auto deposed = loss_of(role::coordinator, 0); // Another one leads by now.
  deposed.deposed = true;
  CHECK(f.watch.process_lost(deposed).events == lost("coordinator"));
}

TEST_CASE("a_process_that_cannot_be_kept_alive_fails_the_job_with_or_without_a_coordinator") {
  fixture f;
  f.watch.give_up({errc::job_failed, "server 0: the disk is full"}, 1s);
  f.watch.give_up({errc::job_failed, "worker 1: nobody listens"}, 2s);
  CHECK(f.watch.report().failed.value().text == "server 0: the disk is full");
  CHECK(f.watch.failure().value().text == "server 0: the disk is full");
  CHECK(f.watch.look(3s, 5) == standing::running);
  CHECK(f.watch.look(3001ms, 5) == standing::over); // No coordinator is there to tell the others.
  CHECK(f.watch.exit_status() == 1);
  fixture heard;
  heard.watch.give_up({errc::job_failed, "server 0: the disk is full"}, 1s);
  for (heard.now = 1s; heard.now < 6s; heard.now += 1s)
    heard.follow();
  CHECK(heard.watch.look(6s, 5) == standing::running);
  CHECK(heard.watch.look(6001ms, 5) == standing::over);
}

TEST_CASE("a_job_that_failed_says_why") {
  fixture f;
  f.news.stop = true;
  f.news.failed = failure{errc::job_failed, "training diverged"};
  f.follow(job_phase::stopped);
  CHECK(f.watch.failure().value().text == "training diverged");
  fixture other; // A member told the reason first, in its own words.
  other.watch.give_up({errc::job_failed, "worker 0: training diverged"}, 0s);
  other.news = f.news;
  other.follow();
  CHECK(other.watch.failure().value().text == "training diverged");
  CHECK(f.watch.look(0s, 0) == standing::over);
  CHECK(f.watch.exit_status() == 1);
}

TEST_CASE("a_silent_coordinator_is_told_once") {
  fixture f;
  f.follow(job_phase::training);
  f.now = 5s;
  CHECK(f.watch.follow(f.news, f.now).events.empty());
  f.now = 5001ms;
  CHECK(f.watch.follow(f.news, f.now).events
        == job_events{{event_kind::coordinator_silent, {{"address", "1.2.3.4:5"}}}});
  CHECK(f.watch.follow(f.news, f.now).events.empty());
  CHECK(f.follow().events == job_events{{event_kind::coordinator_answers, {}}});
}

TEST_CASE("a_coordinator_that_hangs_is_killed_but_not_for_a_pause_of_the_launcher") {
  fixture f{{false, true, 10, "1.2.3.4:5", true}};
  const auto killed_by = [&](std::chrono::seconds end) {
    int killed = 0;
    for (; f.now <= end; f.now += 1s)
      killed += f.watch.follow(f.news, f.now).kill_coordinator ? 1 : 0;
    return killed;
  };
  f.follow(job_phase::training);
  CHECK(killed_by(20s) == 0);
  CHECK(killed_by(21s) == 1);
  CHECK(killed_by(41s) == 0); // Its successor has 20 s as well.
  CHECK(killed_by(42s) == 1);
  f.now = 100s;
  CHECK(killed_by(120s) == 0);
  f.follow();
  f.news.stop = true;
  f.follow(job_phase::stopped);
  CHECK(killed_by(200s) == 0);
  fixture joined{{true, true, 10, "1.2.3.4:5"}};
  joined.follow(job_phase::training);
  for (; joined.now <= 50s; joined.now += 1s)
    CHECK_FALSE(joined.watch.follow(joined.news, joined.now).kill_coordinator);
}

TEST_CASE("to_be_sent_away_from_a_job_that_goes_on_is_a_failure") {
  fixture f;
  f.news.stop = true;
  CHECK(f.follow(job_phase::training).wind_down);
  CHECK(f.watch.exit_status() == 1);
}

TEST_CASE("who_joined_leaves_at_once_when_its_user_wants_to") {
  fixture f{{true, true, 10, "1.2.3.4:5"}};
  f.follow(job_phase::training);
  f.watch.stop(2, 0s);
  CHECK(f.watch.look(0s, 5) == standing::abandoned);
  CHECK(f.watch.failure().value().text == "left the job, which goes on without it");
  CHECK(f.watch.exit_status() == 130);
}

TEST_CASE("a_user_who_stops_gets_a_last_checkpoint_and_the_status_of_the_signal") {
  fixture f;
  f.follow(job_phase::training);
  CHECK(f.watch.stop(15, 0s).events.size() == 1);
  CHECK(f.watch.report().stop);
  f.news.desired_state.checkpoint = 4;
  f.news.stop = true;
  CHECK(f.follow(job_phase::stopped).wind_down);
  CHECK(f.watch.look(0s, 0) == standing::over);
  CHECK(f.watch.checkpoint() == 4);
  CHECK_FALSE(f.watch.failure());
  CHECK(f.watch.exit_status() == 143);
}

TEST_CASE("a_user_who_stops_twice_is_obeyed_at_once") {
  fixture f;
  f.watch.stop(2, 0s);
  f.watch.stop(15, 0s);
  CHECK(f.watch.look(0s, 5) == standing::abandoned);
  CHECK(f.watch.failure().value().text == "stopped at once");
  CHECK(f.watch.exit_status() == 143);
}

TEST_CASE("a_last_checkpoint_that_takes_too_long_is_not_waited_for") {
  fixture f;
  f.watch.stop(2, 0s);
  for (; f.now < 20s; f.now += 1s)
    f.follow(job_phase::training);
  CHECK(f.watch.look(20s, 5) == standing::running);
  CHECK(f.watch.look(20'001ms, 5) == standing::abandoned);
  CHECK(f.watch.failure().value().text == "no last checkpoint within 20 s; stopped without it");
  CHECK(f.watch.exit_status() == 1);
}

TEST_CASE("a_last_checkpoint_is_not_waited_for_where_no_coordinator_answers") {
  fixture f;
  f.follow(job_phase::training);
  f.watch.stop(15, 60s);
  CHECK(f.watch.look(65s, 5) == standing::running);
  CHECK(f.watch.look(65'001ms, 5) == standing::abandoned);
  CHECK(f.watch.failure().value().text
        == "no last checkpoint, as no coordinator answers; stopped without it");
  CHECK(f.watch.exit_status() == 1);
}

TEST_CASE("before_the_training_there_is_nothing_to_wait_for") {
  fixture f;
  f.watch.stop(15, 60s);
  CHECK(f.watch.look(62s, 5) == standing::running);
  CHECK(f.watch.look(62'001ms, 5) == standing::abandoned);
  CHECK(f.watch.failure().value().text
        == "stopped before the training began: no word from the coordinator");
  CHECK(f.watch.exit_status() == 143);
}

TEST_CASE("who_joined_judges_nothing_and_leaves_a_job_that_is_silent") {
  fixture f{{true, true, 10, "1.2.3.4:5"}};
  CHECK(f.watch.look(8s, 1) == standing::running);
  fixture unanswered{{true, true, 10, "1.2.3.4:5"}};
  CHECK(unanswered.watch.look(8001ms, 1) == standing::abandoned);
  CHECK(unanswered.watch.failure().value().text == "no job answers at 1.2.3.4:5");
  CHECK(unanswered.watch.exit_status() == 1);
  f.now = 8s;
  CHECK_FALSE(f.follow(job_phase::finished).evaluate);
  f.watch.follow(f.news, 20s); // Old news is no sign of life.
  CHECK(f.watch.look(68s, 1) == standing::running);
  CHECK(f.watch.look(68'001ms, 1) == standing::abandoned);
}

TEST_CASE("the_main_launcher_waits_for_its_coordinator_as_long_as_it_takes") {
  fixture f;
  CHECK(f.watch.look(24h, 5) == standing::running);
}

TEST_CASE("a failure with an empty text fails the job, whatever it is a failure of") {
  const failure silent{errc::job_failed, ""};
  fixture told;
  told.news.stop = true;
  told.news.failed = silent;
  told.follow(job_phase::stopped);
  CHECK(told.watch.failure() == silent);
  CHECK(told.watch.exit_status() == 1);
  fixture evaluated;
  evaluated.follow(job_phase::finished);
  CHECK(evaluated.watch.on_evaluated(silent));
  CHECK(evaluated.watch.exit_status() == 1);
  fixture gave_up;
  gave_up.watch.give_up(silent, 1s);
  CHECK(gave_up.watch.report().failed == silent);
  CHECK(gave_up.watch.exit_status() == 1);
}

} // namespace job_monitor_test
