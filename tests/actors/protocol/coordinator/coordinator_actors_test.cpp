// Tests what the coordinator does for actors of a program: they come and go beside the training.
#include "tests/actors/coordinator_fixture.hpp"

namespace troupe::coordinator_actors_test {
namespace {

constexpr std::uint32_t actors = 3;

job_spec job_with_actors() {
  auto job = job_of_mode(consistency_mode::asp);
  job.actors = actors;
  return job;
}

coordinator_options without_checkpoints() {
  coordinator_options made;
  made.checkpoints = false;
  return made;
}

member_id actor_id(std::uint32_t index, std::uint64_t incarnation) {
  return {role::actor, index, {incarnation}};
}

/// Returns the addresses of members of these roles that the member was told of last.
std::vector<std::string> addresses_for(coordinator_fixture& one, const member_id& whom,
                                       std::initializer_list<role> roles) {
  std::vector<std::string> all;
  for (const auto& each : one.last.at(whom).listeners)
    if (std::ranges::count(roles, each.member.role) > 0)
      all.push_back(each.address);
  return all;
}

/// Returns the members of the role actor that the main launcher was told of last.
std::vector<member_status> shown_actors(coordinator_fixture& one) {
  one.tick(100ms);
  one.observer();
  auto all = std::get<job_status>(one.all_desired(role::observer, 0, 900).body).members;
  std::erase_if(all, [](const member_status& x) { return x.member.role != role::actor; });
  return all;
}

void apply_all(coordinator_fixture& one) {
  one.server(0, 100, one.job.batches());
  one.server(1, 101, one.job.batches());
}

TEST_CASE("training neither waits for actors nor notices their end") {
  coordinator_fixture one(job_with_actors());
  one.train();
  const auto leases = one.desired_of(0, 200).leases;
  one.actor(1, 501);
  CHECK(one.told(event_kind::member_joined, {{"member", "actor 1"}}));
  one.death(role::actor, 1, 501);
  CHECK(one.told(event_kind::actor_lost, {{"member", "actor 1"}, {"reason", "process ended"}}));
  one.actor(1, 511);
  CHECK(one.told(event_kind::member_rejoined, {{"member", "actor 1"}}));
  CHECK(one.desired_of(0, 200).leases == leases);
  CHECK(one.finds == 0);
  CHECK_FALSE(one.told_loss());
}

TEST_CASE("an actor gets the view, and no order to wind down while there is work") {
  coordinator_fixture one(job_with_actors());
  one.train();
  one.actor(0, 500);
  CHECK(one.desired_of_actor(0, 500).view == one.desired_of(0, 200).view);
  CHECK_FALSE(one.desired_of_actor(0, 500).wind_down);
  CHECK_FALSE(one.all_desired(role::actor, 0, 500).stop);
  CHECK(addresses_for(one, actor_id(0, 500), {role::server})
        == std::vector<std::string>{"s100", "s101"});
}

TEST_CASE("actors and workers hear of each member at which a channel ends, others do not") {
  coordinator_fixture one(job_with_actors());
  one.train();
  one.observer();
  one.actor(0, 500);
  one.actor(1, 501, {}, false); // It sends only.
  one.worker(0, 200);
  const member_id worker{role::worker, 0, {200}};
  const auto roles = {role::actor, role::worker};
  for (const auto& whom : {worker, actor_id(0, 500), actor_id(1, 501)})
    CHECK(addresses_for(one, whom, roles) == std::vector<std::string>{"a500"});
  const member_id server{role::server, 0, {100}}, observer{role::observer, 0, {900}};
  for (const auto& whom : {server, observer})
    CHECK(addresses_for(one, whom, roles).empty());
  const auto before = one.sent[worker];
  one.death(role::actor, 0, 500); // The list without it is sent at once.
  CHECK(one.sent[worker] == before + 1);
  CHECK(addresses_for(one, worker, roles).empty());
}

TEST_CASE("a worker at which a channel ends is listed with its first address") {
  coordinator_fixture one(job_with_actors());
  one.actor(0, 500);
  const member_id worker{role::worker, 0, {200}}, other{role::worker, 1, {201}};
  one.receive(worker, worker_status{}, "w200");
  one.receive(other, worker_status{}, "");
  one.tick(100ms);
  one.receive(worker, worker_status{}, "w999"); // An incarnation never changes it.
  one.receive(other, worker_status{}, "w201");
  one.actor(0, 500);
  CHECK(addresses_for(one, actor_id(0, 500), {role::worker}) == std::vector<std::string>{"w200"});
  CHECK(addresses_for(one, other, {role::worker, role::actor})
        == std::vector<std::string>{"w200", "a500"});
}

TEST_CASE("an actor that hangs or is replaced is lost as a worker is") {
  coordinator_fixture one(job_with_actors());
  one.train();
  one.actor(0, 500);
  one.actor(1, 501);
  for (int i = 0; i < 51; ++i) {
    one.tick(100ms);
    one.observer();
    one.server(0, 100);
    one.server(1, 101);
    one.worker(0, 200);
    one.worker(1, 201);
    if (i < 48)
      one.actor(1, 501);
  }
  CHECK(
    one.told(event_kind::actor_lost, {{"member", "actor 0"}, {"reason", "silent for 5000 ms"}}));
  CHECK_FALSE(one.told(event_kind::actor_lost, {{"member", "actor 1"}}));
  one.tick(600ms);
  one.actor(1, 511);
  CHECK(one.told(event_kind::actor_lost,
                 {{"member", "actor 1"}, {"reason", "a newer one took its place"}}));
  one.actor(1, 501);
  CHECK(one.all_desired(role::actor, 1, 501).stop);
}

TEST_CASE("an actor that cannot go on stops the job with its text") {
  coordinator_fixture one(job_with_actors());
  one.train();
  one.actor(2, 502,
            {.counters = {}, .host = {}, .failed = failure{errc::job_failed, "take threw: no"}});
  CHECK(one.boss->phase() == job_phase::stopped);
  CHECK(one.told(event_kind::job_failed, {{"reason", "actor 2: take threw: no"}}));
  one.actor(1, 501);
  CHECK(one.all_desired(role::actor, 1, 501).stop);
}

TEST_CASE("launchers see each actor of the job, with its counters") {
  coordinator_fixture one(job_with_actors());
  one.train();
  actor_status body;
  body.counters.ports = {{"players.seen", 4, 5, 6, 7}};
  one.actor(1, 501, body);
  one.actor(7, 507);
  const auto shown = shown_actors(one);
  REQUIRE(shown.size() == actors + 1);
  CHECK(shown[3].member == actor_id(7, 507));
  CHECK(shown[0].member == actor_id(0, 0));
  CHECK(shown[0].state == member_state::absent);
  CHECK(shown[1].member == actor_id(1, 501));
  CHECK(shown[1].state == member_state::active);
  CHECK(shown[1].actor == body.counters);
  CHECK(shown[2].state == member_state::absent);
}

TEST_CASE("when all batches are applied actors wind down, and their end is no loss") {
  coordinator_fixture one(job_with_actors(), without_checkpoints());
  one.train();
  one.actor(0, 500);
  one.actor(1, 501);
  apply_all(one);
  REQUIRE(one.boss->phase() == job_phase::finishing);
  CHECK(one.desired_of_actor(0, 500).wind_down);
  actor_status body;
  body.counters.ports = {{"players.seen", 4, 5, 6, 7}};
  body.stopped = true;
  one.actor(0, 500, body);
  one.death(role::actor, 0, 500);
  CHECK(one.times_told(event_kind::actor_lost) == 0);
  CHECK(one.boss->phase() == job_phase::finishing);
  one.death(role::actor, 1, 501); // Its stop() had not returned.
  CHECK(one.told(event_kind::actor_lost, {{"member", "actor 1"}}));
  CHECK(one.boss->phase() == job_phase::finished);
  const auto shown = shown_actors(one);
  REQUIRE(shown.size() == actors);
  CHECK(shown[0].state == member_state::finished);
  CHECK(shown[0].member == actor_id(0, 500));
  CHECK(shown[0].actor == body.counters);
  CHECK(shown[1].state == member_state::absent);
}

TEST_CASE("a stop() that does not return holds up the end of the job for 5 s") {
  coordinator_fixture one(job_with_actors(), without_checkpoints());
  one.train();
  one.actor(0, 500);
  apply_all(one);
  const auto wait = [&](std::chrono::milliseconds time) {
    for (; time > 0ms; time -= 100ms) {
      one.tick(100ms);
      one.actor(0, 500);
      apply_all(one);
    }
  };
  wait(4900ms);
  CHECK(one.boss->phase() == job_phase::finishing);
  wait(200ms);
  CHECK(one.boss->phase() == job_phase::finished);
  CHECK(one.times_told(event_kind::actor_unstopped) == 1);
  CHECK(one.told(event_kind::actor_unstopped, {{"member", "actor 0"}, {"seconds", "5"}}));
}

TEST_CASE(
  "actors wind down while the last checkpoint is written, and when the user stops the job") {
  coordinator_fixture one(job_with_actors());
  one.train();
  one.actor(0, 500);
  apply_all(one);
  CHECK(one.boss->phase() == job_phase::finishing);
  CHECK(one.desired_of_actor(0, 500).wind_down);

  coordinator_fixture two(job_with_actors());
  two.train();
  two.actor(0, 500);
  observer_status stop;
  stop.stop = true;
  two.observer(stop);
  CHECK(two.desired_of_actor(0, 500).wind_down);
  CHECK_FALSE(two.all_desired(role::actor, 0, 500).stop);
}

TEST_CASE("a restarted coordinator lists no members before the actors have reported too") {
  coordinator_fixture before(job_with_actors());
  before.train();
  const auto restarted = [&](bool all) {
    coordinator_fixture one(job_with_actors(), {}, state_of(before));
    one.server(0, 100);
    one.server(1, 101);
    one.worker(0, 200);
    one.worker(1, 201);
    for (std::uint32_t i = 0; i < (all ? actors : actors - 1); ++i)
      one.actor(i, 500 + i);
    return one;
  };
  CHECK(restarted(true).last.contains(actor_id(0, 500)));
  auto one = restarted(false);
  CHECK(one.last.empty());
  one.tick(3000ms); // Its absence means something now.
  CHECK(addresses_for(one, actor_id(0, 500), {role::actor})
        == std::vector<std::string>{"a500", "a501"});
}

TEST_CASE("an actor beyond what a job can have is sent home") {
  coordinator_fixture one(job_with_actors());
  one.actor(actors_max, 500);
  CHECK(one.all_desired(role::actor, actors_max, 500).stop);
  CHECK(one.all_desired(role::actor, actors_max, 500).failed);
  one.actor(actors_max - 1, 501);
  CHECK_FALSE(one.all_desired(role::actor, actors_max - 1, 501).stop);
}

} // namespace
} // namespace troupe::coordinator_actors_test
