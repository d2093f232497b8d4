#include "actors/protocol/session/coordinator_watch.hpp"

#include "doctest/doctest.h"

namespace coordinator_watch_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

using job_events = std::vector<job_event>;

struct fixture {
  explicit fixture(bool is_only_one = false) : watch({"1.2.3.4:5", is_only_one}, 0s) {}

  /// Takes fresh news.
  coordinator_watch::findings follow(job_phase phase = job_phase::training) {
    ++news.sequence;
    news.desired_state.phase = phase;
    return again();
  }
  /// Takes the last news once more.
  coordinator_watch::findings again() { return watch.follow(news, now); }

  void tell(const std::string& text) {
    news.desired_state.events.push_back(note_of(text));
    ++news.desired_state.events_total;
  }

  time_point now{0};
  job_update news{{}, 1, false, {}, 0};
  coordinator_watch watch;
};

} // namespace

TEST_CASE("each event is returned once, also those of a new coordinator") {
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

TEST_CASE("a silent coordinator is told of once, and its answer too") {
  fixture f;
  f.follow();
  f.now = 5s;
  CHECK(f.again().events.empty());
  f.now = 5001ms;
  CHECK(f.again().events
        == job_events{{event_kind::coordinator_silent, {{"address", "1.2.3.4:5"}}}});
  CHECK(f.again().events.empty());
  CHECK(f.follow().events == job_events{{event_kind::coordinator_answers, {}}});
  fixture ended;
  ended.follow();
  ended.watch.job_ended();
  ended.now = 60s;
  CHECK(ended.again().events.empty());
}

TEST_CASE("a coordinator hangs after 20 s, but not for a pause of the launcher") {
  fixture f{true};
  const auto found_by = [&](std::chrono::seconds end) {
    int found = 0;
    for (; f.now <= end; f.now += 1s)
      found += f.again().is_hung ? 1 : 0;
    return found;
  };
  f.follow();
  CHECK(found_by(20s) == 0);
  CHECK(found_by(21s) == 1);
  CHECK(found_by(41s) == 0); // Its successor has 20 s as well.
  CHECK(found_by(42s) == 1);
  f.now = 100s;
  CHECK(found_by(120s) == 0);
  f.follow();
  f.watch.job_ended();
  CHECK(found_by(200s) == 0);
}

TEST_CASE("only the only coordinator of this host can be killed, so only it can hang") {
  fixture f;
  f.follow();
  for (; f.now <= 50s; f.now += 1s)
    CHECK_FALSE(f.again().is_hung);
}

TEST_CASE("after a death, a newer coordinator that has gathered its members is back") {
  fixture f;
  f.follow();
  f.watch.lost(f.now);
  CHECK_FALSE(f.follow().is_back); // The lost coordinator's last message is late.
  f.news.term = 2;
  CHECK_FALSE(f.follow(job_phase::gathering).is_back);
  const auto found = f.follow();
  CHECK(found.is_back);
  CHECK(found.events == job_events{{event_kind::coordinator_back, {}}});
  CHECK_FALSE(f.follow().is_back);
}

TEST_CASE("where a standby was lost, the coordinator was there all the time") {
  fixture f;
  f.follow();
  f.now = 1s;
  f.watch.lost(f.now);
  f.now = 1500ms;
  CHECK_FALSE(f.follow().is_back); // It may be the lost one's last message.
  f.now = 1501ms;
  CHECK_FALSE(f.again().is_back);
  const auto found = f.follow();
  CHECK(found.is_back);
  CHECK(found.events.empty());
  f.news.term = 2;
  CHECK_FALSE(f.follow().is_back);
}

TEST_CASE("a coordinator beside the one that sends news is a standby") {
  fixture f;
  CHECK_FALSE(f.watch.is_standby(0)); // No news named a leader yet.
  f.news.desired_state.coordinator = 1;
  f.follow();
  CHECK_FALSE(f.watch.is_standby(0)); // News without members are the last ones of a job.
  f.news.desired_state.members.emplace_back();
  f.follow();
  CHECK(f.watch.is_standby(0));
  CHECK_FALSE(f.watch.is_standby(1));
}

TEST_CASE("silence is counted from the latest news, or from the start") {
  fixture f;
  CHECK_FALSE(f.watch.is_silent_since(0s, 2s, 2s));
  CHECK(f.watch.is_silent_since(0s, 2s, 2001ms));
  CHECK_FALSE(f.watch.heard_at());
  f.now = 10s;
  f.follow();
  CHECK(f.watch.heard_at() == 10s);
  CHECK_FALSE(f.watch.is_silent_since(0s, 2s, 12s));
  CHECK(f.watch.is_silent_since(0s, 2s, 12'001ms));
  CHECK_FALSE(f.watch.is_silent_since(11s, 2s, 13s));
}

} // namespace coordinator_watch_test
