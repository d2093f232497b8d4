#include "cli/resize_monitor.hpp"

#include "doctest/doctest.h"

#include <map>

namespace resize_monitor_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

using lines = std::vector<std::string>;

struct fixture {
  explicit fixture(resize_request request, std::uint32_t chains = 12)
      : watch(std::move(request), job_of(chains), "host:1", 60s, now) {
    news.term = 1;
    news.desired_state.phase = job_phase::training;
  }

  static job_spec job_of(std::uint32_t chains) {
    job_spec job;
    job.name = "digits";
    job.servers = 2;
    job.shards = chains;
    return job;
  }

  /// Sets the job's servers, the state of each, and the servers that are draining.
  void have(const std::map<std::uint32_t, member_state>& servers,
            std::vector<server_id> draining = {}) {
    news.desired_state.servers.clear();
    news.desired_state.members.clear();
    for (const auto& [index, state] : servers) {
      news.desired_state.servers.push_back({index});
      member_status one;
      one.member = {role::server, index, {1}};
      one.state = state;
      news.desired_state.members.push_back(one);
    }
    news.desired_state.draining = std::move(draining);
  }
  void tell(job_event event) {
    news.desired_state.events.push_back(std::move(event));
    ++news.desired_state.events_total;
  }
  lines look() { return watch.look(news, now); }
  std::string failure() {
    return watch.outcome() && !*watch.outcome() ? watch.outcome()->error().text : "";
  }
  bool is_done() { return watch.outcome() && *watch.outcome(); }

  time_point now{10s};
  job_update news;
  resize_monitor watch;
};

constexpr auto active = member_state::active;
constexpr auto absent = member_state::absent;

} // namespace

TEST_CASE("servers_that_are_added_get_free_indices_and_are_waited_for") {
  fixture f{{.add = 2}};
  f.tell({event_kind::member_joined, {{"member", "server 1"}}});
  f.have({{0, active}, {2, active}});
  CHECK(f.look() == lines{"asked for server 1, server 3"});
  CHECK(f.watch.wanted() == resize{{{1}, {3}}, {}});
  f.have({{0, active}, {1, absent}, {2, active}, {3, absent}});
  f.tell({event_kind::member_joined, {{"member", "server 3"}}});
  f.tell({event_kind::member_joined, {{"member", "server 30"}}});
  CHECK(f.look() == lines{"server 3 joined"});
  CHECK(f.watch.wanted() == resize{}); // The coordinator has the wish.
  CHECK_FALSE(f.watch.outcome());
  f.have({{0, active}, {1, active}, {2, active}, {3, member_state::restoring}});
  CHECK(f.look().empty());
  CHECK_FALSE(f.watch.outcome());
  f.have({{0, active}, {1, active}, {2, active}, {3, active}});
  f.tell({event_kind::server_placed, {{"member", "server 3"}, {"shards", std::uint64_t{2}}}});
  CHECK(f.look() == lines{"server 3 holds 2 shards"});
  CHECK(f.is_done());
}

TEST_CASE("a_server_that_the_chains_cannot_use_is_added_with_a_word") {
  fixture f{{.add = 1}, 2};
  f.have({{0, active}, {1, active}});
  CHECK(f.look()
        == lines{"asked for server 2", "server 2 of digits will be without work, as there are "
                                       "enough servers; --shards is chosen when a job begins"});
}

TEST_CASE("servers_that_leave_are_gone_when_the_job_does_not_have_them_any_more") {
  fixture f{{.drain = {{0}, {1}}}};
  f.have({{0, active}, {1, active}, {2, active}});
  CHECK(f.look() == lines{"draining server 0, server 1"});
  CHECK(f.watch.wanted() == resize{{}, {{0}, {1}}});
  f.have({{0, active}, {1, active}, {2, active}}, {{0}, {1}});
  CHECK(f.look().empty());
  CHECK(f.watch.wanted() == resize{});
  f.have({{1, active}, {2, active}}, {{1}});
  CHECK(f.look().empty());
  CHECK_FALSE(f.watch.outcome());
  f.have({{2, active}});
  CHECK(f.look() == lines{"drained server 0, server 1"});
  CHECK(f.is_done());
}

TEST_CASE("a_server_that_never_was_there_has_not_left") {
  fixture f{{.drain = {{7}}}};
  f.have({{0, active}});
  f.look();
  CHECK_FALSE(f.watch.outcome());
  CHECK(f.watch.wanted() == resize{{}, {{7}}}); // The coordinator reports the error.
  f.news.stop = true;
  f.news.failed = failure{errc::invalid_argument, "no such server"};
  f.look();
  CHECK(f.failure() == "no such server");
}

TEST_CASE("events_of_a_new_coordinator_are_shown_from_the_first") {
  fixture f{{.add = 1}};
  f.have({{0, active}});
  f.tell({event_kind::member_rejoined, {{"member", "server 1"}}});
  f.look();
  f.news.term = 2;
  f.news.desired_state.events = {{event_kind::member_joined, {{"member", "server 1"}}}};
  f.news.desired_state.events_total = 1;
  CHECK(f.look() == lines{"server 1 joined"});
  CHECK(f.look().empty());
}

TEST_CASE("a_job_that_does_not_answer_ends_or_takes_too_long_is_a_failure") {
  fixture f{{.add = 1}};
  SUBCASE("it does not answer") {
    f.now += 6s;
    f.watch.look({}, f.now);
    CHECK_FALSE(f.watch.outcome());
    f.now += 1s;
    f.watch.look({}, f.now);
    CHECK(f.failure() == "no job answers at host:1: the run has ended");
  }
  SUBCASE("it has ended") {
    f.news.stop = true;
    f.look();
    CHECK(f.failure() == "the job has ended");
  }
  SUBCASE("it ends") {
    f.have({{0, active}});
    f.look();
    f.news.stop = true;
    f.look();
    CHECK(f.failure() == "the job ended before that");
  }
  SUBCASE("it falls silent") {
    f.have({{0, active}});
    f.look();
    f.now += 7s;
    CHECK(f.look() == lines{"no word from the coordinator at host:1 for 6 s"});
    ++f.news.sequence;
    f.now += 20s;
    CHECK(f.look().empty());
    f.now += 30s;
    CHECK(f.look().size() == 1);
    CHECK_FALSE(f.watch.outcome());
    f.now += 1s;
    f.look();
    CHECK(f.failure() == "no word from the coordinator at host:1 for 30 s: the run has ended");
  }
  SUBCASE("it takes too long") {
    f.have({{0, active}});
    f.look();
    f.have({{0, active}, {1, absent}});
    f.now += 61s;
    f.look();
    CHECK(f.failure() == "not done within 60 s; the job goes on with it");
  }
}

} // namespace resize_monitor_test
