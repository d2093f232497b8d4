// Tests the decisions of a launcher. The test plays the coordinator, the processes, the evaluator
// and the clock.
#include "tests/actors/protocol/session/session_fixture.hpp"

namespace session_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

using fixture = session_fixture;

session_options joined() {
  auto made = default_session();
  made.joined = true;
  return made;
}

/// A host with a coordinator, two servers and workers 0, 1 and 2, of which the last two share a
/// process.
session_options with_processes() {
  auto made = default_session();
  made.processes = {{{role::coordinator, 0}},
                    {{role::server, 0}, "model"},
                    {{role::server, 1}, "model"},
                    {{role::worker, 0}, "learners", {}, {0}},
                    {{role::worker, 1}, "learners", {}, {1, 2}}};
  made.added_server = process_plan{{role::server, 0}, "model"};
  return made;
}

/// Checks that the run ended without a result.
void check_abandoned(const session_effects_seen& last, int status, const std::string& why) {
  REQUIRE(last.end);
  CHECK(last.end->abandoned);
  CHECK(last.end->status == status);
  CHECK(last.end->why.value().text == why);
}

job_event ended(const std::string& member, const std::string& reason) {
  return {event_kind::process_ended, {{"member", member}, {"reason", reason}}};
}

} // namespace

TEST_CASE("a job that ends well is evaluated, then done, then over") {
  auto options = default_session();
  options.exports = true;
  fixture f{options};
  CHECK(f.follow().said.empty());
  f.now = 1s;
  CHECK(f.follow(job_phase::training).evaluated.empty());
  f.news.desired_state.batches_done = 20;
  CHECK(f.follow(job_phase::finished).evaluated == std::vector<std::uint64_t>{2});
  CHECK_FALSE(f.session.report().done);
  CHECK(f.take(epoch_evaluated{}).trained == std::vector{true});
  CHECK(f.session.report().done);
  f.take(file_written{});
  f.news.stop = true;
  f.follow(job_phase::stopped);
  const auto last = f.look();
  CHECK(last.results == 1);
  REQUIRE(last.end);
  CHECK(last.end->status == 0);
  CHECK_FALSE(last.end->why);
  CHECK_FALSE(last.end->abandoned);
  CHECK_FALSE(f.look().end); // Nothing follows the end.
}

TEST_CASE("processes that do not end by themselves are waited for 5 s, and standbys are not") {
  auto options = with_processes();
  options.processes.push_back({{role::coordinator, 1}});
  options.standbys = 1;
  fixture f{options};
  CHECK(f.look().started.size() == 6);
  f.news.stop = true;
  f.follow(job_phase::stopped);
  CHECK_FALSE(f.look(5s).end);
  CHECK(f.look(5001ms).end);
  fixture quick{options};
  quick.look();
  quick.news.stop = true;
  quick.follow(job_phase::stopped);
  for (const auto& each : options.processes)
    if (each.who != process_name{role::coordinator, 1}) {
      CHECK_FALSE(quick.look().end);
      CHECK(quick.exit(each.who, 0).lost.empty());
    }
  CHECK(quick.look().end);
}

TEST_CASE("one evaluation at a time is asked for, and the last one once") {
  fixture f;
  f.news.desired_state.batches_done = 10;
  CHECK(f.follow(job_phase::training).evaluated == std::vector<std::uint64_t>{1});
  f.news.desired_state.batches_done = 20;
  CHECK(f.follow().evaluated.empty()); // The first evaluation still runs.
  f.news.desired_state.batches_done = 30;
  CHECK(f.take(epoch_evaluated{}).trained.empty());
  CHECK(f.follow().evaluated == std::vector<std::uint64_t>{3});
  f.take(epoch_evaluated{failure{errc::job_failed, "no answer"}});
  CHECK(f.follow().evaluated.empty());
  CHECK(f.follow(job_phase::finished).evaluated == std::vector<std::uint64_t>{3});
  CHECK(f.take(epoch_evaluated{}).trained == std::vector{false});
  CHECK(f.follow().evaluated.empty());
}

TEST_CASE("without evaluators only the end is evaluated") {
  auto options = default_session();
  options.evaluates = evaluated_parameters::final;
  fixture f{options};
  f.news.desired_state.batches_done = 15;
  CHECK(f.follow(job_phase::training).evaluated.empty());
  CHECK(f.follow(job_phase::finished).evaluated == std::vector<std::uint64_t>{1});
}

TEST_CASE("a last evaluation that fails is a failure, ends the job and exports nothing") {
  auto options = default_session();
  options.exports = true;
  fixture f{options};
  f.follow(job_phase::finished);
  CHECK(f.take(epoch_evaluated{failure{errc::job_failed, "out of memory"}}).trained
        == std::vector{false});
  CHECK(f.session.report().done);
  CHECK(f.session.failed().value().text
        == "trained, but the final parameters were not evaluated: out of memory");
  CHECK(f.session.exit_status() == 1);
}

TEST_CASE("a file that cannot be written fails the run, at the export and at the results") {
  auto options = default_session();
  options.exports = true;
  fixture f{options};
  f.follow(job_phase::finished);
  f.take(epoch_evaluated{});
  f.take(file_written{failure{errc::io_failed, "the disk is full"}});
  f.news.stop = true;
  f.follow(job_phase::stopped);
  const auto last = f.look();
  REQUIRE(last.end);
  CHECK(last.end->status == 1);
  CHECK(last.end->why.value().text == "the disk is full");
  troupe::session other{default_session(), 0s};
  job_update news{{}, 1, false, {}, 1};
  news.desired_state.phase = job_phase::finished;
  other.take(news, 0s);
  other.take(epoch_evaluated{}, 0s);
  news.stop = true;
  news.desired_state.phase = job_phase::stopped;
  other.take(news, 0s);
  const auto writes = other.take(time_passed{}, 0s);
  REQUIRE(std::holds_alternative<results_effect>(writes.back()));
  const auto over = other.take(file_written{failure{errc::io_failed, "no report"}}, 0s);
  REQUIRE(over.size() == 1);
  CHECK(std::get<end_effect>(over.front()).status == 1);
  CHECK(std::get<end_effect>(over.front()).why.value().text == "no report");
}

TEST_CASE("a request to stop a job that is done changes no status, but a second one does") {
  fixture f;
  f.follow(job_phase::finished);
  f.take(epoch_evaluated{});
  f.stop(15);
  CHECK(f.session.exit_status() == 0);
  f.stop(15);
  CHECK(f.session.exit_status() == 143);
}

// -- processes --

TEST_CASE("all processes are started, and one that is killed starts again at once") {
  fixture f{with_processes()};
  CHECK(f.look().started
        == std::vector<process_name>{{role::coordinator, 0},
                                     {role::server, 0},
                                     {role::server, 1},
                                     {role::worker, 0},
                                     {role::worker, 1}});
  f.tell({role::server, 1}, word_kind::works);
  f.now = 60ms;
  const auto dead = f.die({role::server, 1});
  CHECK(dead.said == job_events{ended("server 1", "killed by signal 9 (perhaps out of memory)")});
  CHECK(dead.started == std::vector<process_name>{{role::server, 1}});
  REQUIRE(dead.lost.size() == 1);
  CHECK(dead.lost[0].member == member_id{role::server, 1, {3}});
  CHECK(dead.lost[0].detected_at == 60ms);
  REQUIRE(f.session.report().deaths.size() == 1);
  CHECK(f.session.report().deaths[0].member == member_id{role::server, 1, {3}});
}

TEST_CASE("the end of a process of several workers is the loss of each") {
  fixture f{with_processes()};
  f.look();
  const auto dead = f.exit({role::worker, 1}, 7, "out of luck");
  CHECK(dead.said
        == job_events{ended("worker 1", "exit status 7: out of luck"),
                      ended("worker 2", "exit status 7: out of luck")});
  REQUIRE(f.session.report().deaths.size() == 2);
  CHECK(f.session.report().deaths[0].member == member_id{role::worker, 1, {5}});
  CHECK(f.session.report().deaths[1].member == member_id{role::worker, 2, {6}});
}

TEST_CASE("of many deaths the last 64 are reported") {
  fixture f{with_processes()};
  f.look();
  for (int i = 1; i <= 100; ++i) {
    f.tell({role::server, 0}, word_kind::works);
    f.now += 1s;
    f.die({role::server, 0});
  }
  REQUIRE(f.session.report().deaths.size() == 64);
  CHECK(f.session.report().deaths.back().member.incarnation.value == 104);
}

TEST_CASE("the first start that fails ends the run with its reason") {
  fixture f{with_processes()};
  f.start_fails = failure{errc::io_failed, "no memory"};
  const auto begun = f.look();
  REQUIRE(begun.end);
  CHECK(begun.end->abandoned);
  CHECK(begun.end->status == 1);
  CHECK(begun.end->why == failure{errc::io_failed, "no memory"});
}

TEST_CASE("a later start that fails is tried again") {
  fixture f{with_processes()};
  f.look();
  f.start_fails = failure{errc::io_failed, "no memory"};
  f.tell({role::server, 0}, word_kind::works);
  CHECK(f.die({role::server, 0}).started.size() == 1);
  CHECK(f.look().started.empty());
  f.start_fails.reset();
  CHECK(f.look(100ms).started == std::vector<process_name>{{role::server, 0}});
}

TEST_CASE("a coordinator that was lost is back when a newer one has gathered its members") {
  fixture f{with_processes()};
  f.look();
  f.follow(job_phase::training);
  f.die({role::coordinator, 0});
  CHECK(f.session.report().deaths.empty());
  CHECK(f.follow().recovered == 0); // The lost coordinator's last message is late.
  f.news.term = 2;
  CHECK(f.follow(job_phase::gathering).recovered == 0);
  const auto what = f.follow(job_phase::training);
  CHECK(what.recovered == 1);
  CHECK(what.said == job_events{{event_kind::coordinator_back, {}}});
  CHECK(f.follow().recovered == 0);
}

TEST_CASE("a standby that is lost is called one, and a deposed coordinator is not") {
  auto options = with_processes();
  options.processes.push_back({{role::coordinator, 1}});
  fixture f{options};
  f.look();
  f.news.desired_state.members.emplace_back();
  f.news.desired_state.coordinator = 1;
  f.follow(job_phase::training);
  const std::string how = "killed by signal 9 (perhaps out of memory)";
  CHECK(f.die({role::coordinator, 0}).said == job_events{ended("standby coordinator 0", how)});
  CHECK(f.die({role::coordinator, 1}).said == job_events{ended("coordinator 1", how)});
  f.now += 10s;
  f.look();
  f.tell({role::coordinator, 0}, word_kind::deposed, "no longer leads");
  CHECK(f.exit({role::coordinator, 0}, 1).said
        == job_events{ended("coordinator", "no longer leads")});
}

TEST_CASE("a coordinator that hangs is killed") {
  auto options = with_processes();
  options.coordinator.is_only_one = true;
  fixture f{options};
  f.look();
  f.follow(job_phase::training);
  for (; f.now <= 20s; f.now += 1s)
    CHECK(f.take(f.news).killed.empty());
  CHECK(f.take(f.news).killed == std::vector<process_name>{{role::coordinator, 0}});
  const auto dead = f.die({role::coordinator, 0});
  CHECK(dead.said == job_events{ended("coordinator", "killed by signal 9")});
  CHECK(dead.started == std::vector<process_name>{{role::coordinator, 0}});
}

TEST_CASE("a process that hangs is killed, once the coordinator has declared it lost") {
  fixture f{with_processes()};
  f.look();
  member_status one;
  one.member = {role::server, 0, {2}};
  f.news.desired_state.members = {one};
  f.follow(job_phase::training);
  f.news.desired_state.members.clear();
  CHECK(f.follow().killed.empty());
  f.now = 5s;
  CHECK(f.follow().killed.empty());
  f.now = 5001ms;
  const auto found = f.follow();
  CHECK(found.killed == std::vector<process_name>{{role::server, 0}});
  CHECK(found.said == job_events{{event_kind::process_hung, {{"member", "server 0"}}}});
}

TEST_CASE("a process that hangs is killed while a new coordinator gathers the members") {
  fixture f{with_processes()};
  f.look();
  member_status one;
  one.member = {role::server, 0, {2}};
  f.news.desired_state.members = {one};
  f.follow(job_phase::training);
  f.news.term = 2;
  f.news.desired_state.members.clear();
  CHECK(f.follow(job_phase::gathering).killed.empty());
  f.now = 5001ms;
  CHECK(f.follow().killed == std::vector<process_name>{{role::server, 0}});
}

TEST_CASE("planned kills are carried out once and when it is time, and missed ones are named") {
  auto options = with_processes();
  options.kills = {
    {{role::worker, 2}, 3000ms}, {{role::server, 5}, 1000ms}, {{role::server, 0}, 99'000ms}};
  fixture f{options};
  f.look();
  CHECK(f.look(9s).killed.empty()); // It does not train.
  f.now = 10s;
  f.follow(job_phase::training);
  CHECK(f.look().said.empty());
  CHECK(f.look(11s).said
        == job_events{{event_kind::kill_injected, {{"member", "server 5"}}},
                      note_of("server 5 does not run here")});
  CHECK(f.look(12s).said.empty());
  const auto killed = f.look(13s);
  CHECK(killed.said == job_events{{event_kind::kill_injected, {{"member", "worker 2"}}}});
  CHECK(killed.killed == std::vector<process_name>{{role::worker, 1}}); // Its process.
  f.news.stop = true;
  f.follow(job_phase::stopped);
  CHECK(f.look(20s).said
        == job_events{{event_kind::kill_missed, {{"member", "server 0"}, {"seconds", 99.0}}}});
}

TEST_CASE("servers that are added and that no host runs are started on the main host only") {
  for (const bool is_main : {false, true}) {
    CAPTURE(is_main);
    auto options = default_session();
    options.joined = !is_main;
    options.processes = {{{role::server, 0}, "model"}};
    options.servers_elsewhere = {1};
    if (is_main)
      options.added_server = process_plan{{role::server, 0}, "model"};
    fixture f{options};
    f.look();
    auto& job = f.news.desired_state;
    const auto have = [&](std::uint32_t index, incarnation_id incarnation) {
      job.servers.push_back({index});
      member_status one;
      one.member = {role::server, index, incarnation};
      job.members.push_back(one);
    };
    have(0, {});  // Server 0 is starting here.
    have(1, {});  // Server 1 is another host's.
    have(2, {5}); // Server 2 is too; no option asked for it.
    have(3, {});
    const std::vector<process_name> none, third{{role::server, 3}}, second{{role::server, 2}};
    CHECK(f.follow().started == (is_main ? third : none));
    job.members[2].member.incarnation = {}; // Server 2 is lost; its host restarts it.
    CHECK(f.follow().started.empty());
    job.draining = {{0}, {1}, {2}, {3}};
    CHECK(f.follow().started.empty());
    job.draining.clear();
    job.servers = {{0}, {2}, {3}};
    CHECK(f.follow().started == (is_main ? second : none)); // Server 2 left its host.
    job.servers = {{0}, {2}};
    f.follow();
    if (is_main) // Server 3 left, so it is not started again.
      CHECK(f.die({role::server, 3}).started.empty());
  }
}

TEST_CASE("a server that dies while it is drained starts when it is added before it is missed") {
  fixture f{with_processes()};
  f.look();
  auto& job = f.news.desired_state;
  job.servers = {{0}, {1}};
  member_status one;
  one.member = {role::server, 1, {3}};
  job.members = {one};
  job.draining = {{1}};
  f.follow(job_phase::training);
  CHECK(f.die({role::server, 1}).started.empty());
  job.draining.clear();
  CHECK(f.follow().started == std::vector<process_name>{{role::server, 1}});
}

TEST_CASE("a drained server starts when it is added while the job lists an earlier life of it") {
  fixture f{with_processes()};
  f.look();
  auto& job = f.news.desired_state;
  job.servers = {{0}, {1}};
  member_status one;
  one.member = {role::server, 1, {3}}; // Its later lives end before they join the job.
  job.members = {one};
  f.follow(job_phase::training);
  const std::vector<process_name> again{{role::server, 1}};
  f.die({role::server, 1});
  CHECK(f.look(1s).started == again);
  for (const bool can_start : {true, false, true}) {
    CAPTURE(can_start);
    if (!f.start_fails)
      f.die({role::server, 1});
    job.draining = {{1}};
    CHECK(f.follow().started.empty());
    job.draining.clear();
    f.start_fails.reset();
    if (!can_start)
      f.start_fails = failure{errc::io_failed, "no memory"};
    CHECK(f.follow().started == again);
  }
}

TEST_CASE("a server that was given up is not started again while the job still has it") {
  for (const bool is_hopeless : {false, true}) {
    CAPTURE(is_hopeless);
    auto options = with_processes();
    options.processes[1].on_death.crashes_max = 1;
    fixture f{options};
    f.look();
    member_status lost;
    lost.member = {role::server, 0, {2}}; // The coordinator is the first process that starts.
    f.news.desired_state.servers = {{0}};
    f.news.desired_state.members = {lost};
    CHECK(f.follow().started.empty());
    if (is_hopeless)
      f.tell({role::server, 0}, word_kind::hopeless, "the disk is full");
    CHECK(f.exit({role::server, 0}, 1).started.empty());
    CHECK(f.follow().started.empty());
    f.look();
    CHECK(f.session.report().failed);
    CHECK(f.follow().started.empty());
  }
}

TEST_CASE("an added server that cannot be started is left to other hosts, with a line") {
  fixture f{with_processes()};
  f.look();
  f.start_fails = failure{errc::io_failed, "no memory"};
  f.news.desired_state.servers = {{0}, {1}, {2}};
  member_status one;
  one.member = {role::server, 2, {}};
  f.news.desired_state.members = {one};
  const auto told = f.follow();
  CHECK(told.said == job_events{note_of("no memory")});
  CHECK_FALSE(told.end);
  CHECK(f.follow().started.empty());
}

TEST_CASE("waits of processes become lines, joined and at a bounded rate") {
  fixture f{with_processes()};
  f.look();
  f.take(notice{log_level::warn, "disk", "server 0", "waits for the disk"});
  f.take(notice{log_level::warn, "disk", "server 1", "waits for the disk"});
  CHECK(f.look().said.empty());
  CHECK(f.look(300ms).said
        == job_events{
          {event_kind::process_waits, {{"text", "server 0, server 1: waits for the disk"}}}});
}

// -- failures --

TEST_CASE("a process that cannot be kept alive fails the job, with or without a coordinator") {
  fixture f{with_processes()};
  f.look();
  f.tell({role::server, 0}, word_kind::hopeless, "the disk is full");
  f.exit({role::server, 0}, 1);
  f.look(1s);
  f.tell({role::worker, 1}, word_kind::hopeless, "no server answers");
  f.exit({role::worker, 1}, 1);
  CHECK_FALSE(f.look(3s).end);
  CHECK(f.session.report().failed.value().text == "server 0: the disk is full");
  const auto last = f.look(3001ms); // No coordinator is there to tell the others.
  REQUIRE(last.end);
  CHECK(last.end->status == 1);
  CHECK(last.end->why.value().text == "server 0: the disk is full");
  fixture heard{with_processes()};
  heard.look();
  heard.tell({role::server, 0}, word_kind::hopeless, "the disk is full");
  heard.exit({role::server, 0}, 1);
  heard.look(1s);
  for (; heard.now < 6s; heard.now += 1s)
    heard.follow();
  CHECK_FALSE(heard.look(6s).end);
  CHECK(heard.look(6001ms).end);
}

TEST_CASE("a job that failed says why, in the coordinator's words") {
  fixture f{with_processes()};
  f.look();
  f.tell({role::worker, 0}, word_kind::hopeless, "training diverged");
  f.exit({role::worker, 0}, 1);
  f.look();
  CHECK(f.session.failed().value().text == "worker 0: training diverged");
  f.news.stop = true;
  f.news.failed = failure{errc::job_failed, "training diverged"};
  f.follow(job_phase::stopped);
  CHECK(f.session.failed().value().text == "training diverged");
  CHECK(f.session.exit_status() == 1);
}

TEST_CASE("a job that ends while its launcher is cut off has no result") {
  fixture f;
  f.follow(job_phase::training);
  f.news.stop = true;
  CHECK(f.follow(job_phase::stopped).evaluated.empty());
  const auto last = f.look();
  CHECK(last.results == 1); // The report is written.
  REQUIRE(last.end);
  CHECK(last.end->status == 1);
  CHECK(last.end->why.value().text
        == "the final parameters were not evaluated: this launcher was cut off from the job as it "
           "ended");
}

TEST_CASE("to be sent away from a job that goes on is a failure") {
  fixture f;
  f.news.stop = true;
  f.follow(job_phase::training);
  CHECK(f.session.exit_status() == 1);
}

TEST_CASE("a failure with an empty text fails the job, whatever it is a failure of") {
  const failure silent{errc::job_failed, ""};
  fixture told;
  told.news.stop = true;
  told.news.failed = silent;
  told.follow(job_phase::stopped);
  CHECK(told.session.failed() == silent);
  CHECK(told.session.exit_status() == 1);
  fixture evaluated;
  evaluated.follow(job_phase::finished);
  evaluated.take(epoch_evaluated{silent});
  CHECK(evaluated.session.exit_status() == 1);
}

// -- requests to stop --

TEST_CASE("a user who stops gets a last checkpoint and the status of the signal") {
  fixture f;
  f.follow(job_phase::training);
  CHECK(f.stop(15).said == job_events{{event_kind::stopping, {}}});
  CHECK(f.session.report().stop);
  f.news.desired_state.checkpoint = 4;
  f.news.stop = true;
  f.follow(job_phase::stopped);
  const auto last = f.look();
  REQUIRE(last.end);
  CHECK_FALSE(last.end->abandoned);
  CHECK(last.end->status == 143);
  CHECK_FALSE(last.end->why);
  CHECK(f.session.checkpoint() == 4);
}

TEST_CASE("a stop has saved the work if its own checkpoint is the newest one") {
  for (const bool commits : {true, false})
    for (const bool fails : {true, false}) {
      CAPTURE(commits);
      CAPTURE(fails);
      fixture f;
      f.news.desired_state.checkpoint = 3;
      f.follow(job_phase::training);
      f.stop(15);
      if (commits)
        f.news.desired_state.checkpoint = 4; // It may have been asked for before.
      if (fails) {
        f.news.desired_state.events.push_back(
          {event_kind::checkpoint_failed, {{"checkpoint", std::uint64_t{5}}, {"reason", "full"}}});
        ++f.news.desired_state.events_total;
      }
      f.news.stop = true;
      f.follow(job_phase::stopped);
      CHECK(f.session.is_saved() == (commits && !fails));
    }
  fixture early;
  early.news.desired_state.checkpoint = 3;
  early.follow(job_phase::gathering);
  early.stop(15);
  CHECK(early.session.is_saved()); // The checkpoint is that of the run before.
}

TEST_CASE("a user who stops twice ends the run at once") {
  fixture f;
  f.stop(2);
  f.stop(15);
  check_abandoned(f.look(), 143, "stopped at once");
}

TEST_CASE("a last checkpoint that takes too long is not waited for") {
  fixture f;
  f.stop(2);
  for (; f.now < 20s; f.now += 1s)
    f.follow(job_phase::training);
  CHECK_FALSE(f.look(20s).end);
  const auto last = f.look(20'001ms);
  REQUIRE(last.end);
  CHECK(last.end->abandoned);
  CHECK(last.end->status == 1);
  CHECK(last.end->why.value().text == "no last checkpoint within 20 s; stopped without it");
}

TEST_CASE("a last checkpoint is not waited for where no coordinator answers") {
  fixture f;
  f.follow(job_phase::training);
  f.now = 60s;
  f.stop(15);
  CHECK_FALSE(f.look(65s).end);
  const auto last = f.look(65'001ms);
  REQUIRE(last.end);
  CHECK(last.end->status == 1);
  CHECK(last.end->why.value().text
        == "no last checkpoint, as no coordinator answers; stopped without it");
}

TEST_CASE("before the training there is nothing to wait for") {
  fixture f;
  f.now = 60s;
  f.stop(15);
  CHECK_FALSE(f.look(62s).end);
  const auto last = f.look(62'001ms);
  REQUIRE(last.end);
  CHECK(last.end->status == 143);
  CHECK(last.end->why.value().text
        == "stopped before the training began: no word from the coordinator");
}

// -- without a coordinator --

namespace {

session_options without_coordinator() {
  auto made = default_session();
  made.has_coordinator = false;
  made.evaluates = evaluated_parameters::offered;
  made.processes = {{{role::worker, 0}, "learners"}, {{role::worker, 1}, "learners"}};
  return made;
}

} // namespace

TEST_CASE("members that offer parameters end first, and the final evaluation is waited for") {
  fixture f{without_coordinator()};
  f.look();
  CHECK(f.follow(job_phase::training).evaluated.empty());
  f.news.offered = 1;
  CHECK(f.follow().evaluated == std::vector<std::uint64_t>{1});
  CHECK(f.take(epoch_evaluated{}).trained.empty());
  f.news.offered = 2;
  CHECK(f.follow(job_phase::finished).evaluated == std::vector<std::uint64_t>{2});
  f.news.stop = true;
  f.follow();
  CHECK(f.exit({role::worker, 0}, 0).lost.empty());
  CHECK(f.exit({role::worker, 1}, 0).lost.empty());
  CHECK_FALSE(f.look(19s).end);
  f.take(epoch_evaluated{});
  const auto last = f.look();
  REQUIRE(last.end);
  CHECK(last.end->status == 0);
}

TEST_CASE("parameters that are offered again after a restart are evaluated again") {
  fixture f{without_coordinator()};
  f.look();
  for (const std::uint64_t epoch : {5, 4, 5}) {
    f.news.offered = epoch;
    CHECK(f.follow(job_phase::training).evaluated == std::vector{epoch});
    f.take(epoch_evaluated{});
  }
}

TEST_CASE("a stop without a coordinator has the status of the signal") {
  fixture f{without_coordinator()};
  f.look();
  f.follow(job_phase::training);
  f.stop(15);
  f.news.offered = 2;
  f.follow(job_phase::finished);
  f.news.stop = true;
  f.follow();
  f.exit({role::worker, 0}, 0);
  f.exit({role::worker, 1}, 0);
  f.take(epoch_evaluated{});
  const auto last = f.look();
  REQUIRE(last.end);
  CHECK(last.end->status == 143);
  CHECK_FALSE(last.end->abandoned);
  fixture slow{without_coordinator()};
  slow.look();
  slow.follow(job_phase::training);
  slow.stop(15);
  slow.news.offered = 2;
  for (; slow.now < 20s; slow.now += 1s)
    slow.follow(job_phase::finished);
  CHECK_FALSE(slow.look(20s).end);
  const auto given_up = slow.look(20'001ms);
  REQUIRE(given_up.end);
  CHECK(given_up.end->why.value().text == "stopped before the last evaluation was done");
}

TEST_CASE("a failure without a coordinator ends the job at once") {
  fixture f{without_coordinator()};
  f.look();
  f.tell({role::worker, 0}, word_kind::hopeless, "the disk is full");
  f.exit({role::worker, 0}, 1);
  const auto last = f.look();
  REQUIRE(last.end);
  CHECK(last.end->status == 1);
  CHECK(last.end->why.value().text == "worker 0: the disk is full");
}

// -- hosts that joined --

TEST_CASE("a host that joined leaves at once when its user wants to") {
  fixture f{joined()};
  f.follow(job_phase::training);
  f.stop(2);
  check_abandoned(f.look(), 130, "left the job, which goes on without it");
}

TEST_CASE("a host that joined evaluates nothing, and leaves a job that is silent") {
  fixture unanswered{joined()};
  CHECK_FALSE(unanswered.look(8s).end);
  const auto left = unanswered.look(8001ms);
  REQUIRE(left.end);
  CHECK(left.end->status == 1);
  CHECK(left.end->why.value().text == "no job answers at 1.2.3.4:5");
  fixture f{joined()};
  f.now = 8s;
  CHECK(f.follow(job_phase::finished).evaluated.empty());
  f.now = 20s;
  f.take(f.news); // Old news is no sign of life.
  CHECK_FALSE(f.look(68s).end);
  CHECK(f.look(68'001ms).end);
}

TEST_CASE("the main host waits for its coordinator as long as it takes") {
  fixture f;
  CHECK_FALSE(f.look(24h).end);
}

} // namespace session_test
