// Tests that the coordinator actor sends desired states to the right members, and how it ends. Its
// decisions have tests of their own.
#include "actors/roles/coordinator/coordinator_actor.hpp"
#include "tests/actors/actor_fixture.hpp"
#include "tests/actors/shard_fixture.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <csignal>
#include <map>

#include <sys/resource.h>

namespace coordinator_actor_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

struct fixture : actor_fixture {
  explicit fixture(coordinator_setup with = {}, checkpointer files = {}) : setup(std::move(with)) {
    setup.job = job = job_of({asp()}, 1, 10);
    setup.options.checkpoints = static_cast<bool>(files);
    setup.log = [this](log_level, const std::string& line) { log.push_back(line); };
    auto spawned = spawn_coordinator(system, setup, std::move(files));
    REQUIRE(spawned);
    service = owned(*spawned);
  }

  /// Returns a member that records the desired states that it gets.
  troupe::member_handle spawn_member(const member_id& who) {
    auto& mine = received[who];
    return owned(
      system.spawn([&mine](troupe::member_handle::pointer) -> troupe::member_handle::behavior_type {
        return {[&mine](const desired_state& what) { mine.push_back(what); }};
      }));
  }

  template <class Body>
  void report_from(const member_id& who, const troupe::member_handle& handle, Body body) {
    const std::string address = traits_of(who.role).listens == listening::always ? "there:1" : "";
    send(service, status_message{who, fingerprint(job), ++sequence, 0, std::move(body), address},
         handle);
  }

  /// Returns why the coordinator ended; nullopt while it lives.
  std::optional<errc> end_reason() {
    caf::scoped_actor self{system};
    self->monitor(service);
    std::optional<errc> code;
    self->receive([&](const caf::down_msg& what) { code = from_caf(what.reason).code; },
                  caf::after(0s) >> [] {});
    return code;
  }

  job_spec job;
  coordinator_setup setup;
  coordinator_service service;
  std::map<member_id, std::vector<desired_state>> received;
  std::vector<std::string> log;
  std::uint64_t sequence = 0;
};

/// A store in which another coordinator may take the lead.
class contested_store : public storage::coordinator_store {
public:
  result<storage::coordinator_state> load() override { return storage::coordinator_state{}; }
  result<void> save(const storage::coordinator_state&) override { return may(saves_refused); }
  result<void> check_lead() const override { return may(lead_lost); }

  bool saves_refused = false;
  bool lead_lost = false;

private:
  static result<void> may(bool refused) {
    return refused ? result<void>{errc::fenced, "no longer leads"} : result<void>{};
  }
};

/// Makes every write to a file fail while it lives.
class no_file_may_grow {
public:
  no_file_may_grow() : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{0, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~no_file_may_grow() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  no_file_may_grow(const no_file_may_grow&) = delete;
  no_file_may_grow& operator=(const no_file_may_grow&) = delete;

private:
  rlimit before_{};
  void (*handler_)(int);
};

const member_id server_0{role::server, 0, {10}};
const member_id worker_0{role::worker, 0, {20}};
const member_id observer_0{role::observer, 0, {30}};

} // namespace

TEST_CASE("desired_states_reach_the_member_that_they_are_for") {
  fixture f;
  const auto server = f.spawn_member(server_0);
  const auto worker = f.spawn_member(worker_0);
  f.report_from(server_0, server, server_status{});
  f.report_from(worker_0, worker, worker_status{});
  REQUIRE_FALSE(f.received[server_0].empty());
  REQUIRE_FALSE(f.received[worker_0].empty());
  for (const auto& [who, all] : f.received)
    for (const auto& what : all)
      CHECK(what.to == who);
  CHECK(std::get<desired_server>(f.received[server_0].back().body).chains.size() == 1);
}

TEST_CASE("desired_states_follow_a_member_to_its_newest_handle") {
  fixture f;
  const auto first = f.spawn_member(server_0);
  f.report_from(server_0, first, server_status{});
  const auto count = f.received[server_0].size();
  std::vector<desired_state> elsewhere;
  const auto second = f.owned(
    f.system.spawn([&](troupe::member_handle::pointer) -> troupe::member_handle::behavior_type {
      return {[&](const desired_state& what) { elsewhere.push_back(what); }};
    }));
  f.advance(100ms);
  f.report_from(server_0, second, server_status{});
  CHECK(f.received[server_0].size() == count);
  CHECK_FALSE(elsewhere.empty());
}

TEST_CASE("the_loss_of_an_older_link_does_not_cut_off_the_newer_one") {
  fixture f;
  const auto first = f.spawn_member(server_0);
  f.report_from(server_0, first, server_status{});
  f.send(f.service, lost_atom_v, server_0);
  f.advance(100ms);
  const auto count = f.received[server_0].size();
  f.report_from(server_0, first, server_status{});
  CHECK(f.received[server_0].size() > count);
}

TEST_CASE("a_coordinator_waits_some_time_for_members_after_the_job_stopped") {
  fixture f;
  const auto observer = f.spawn_member(observer_0);
  const auto server = f.spawn_member(server_0);
  f.report_from(server_0, server, server_status{});
  observer_status gives_up;
  gives_up.failed = failure{errc::job_failed, "the user had enough"};
  f.report_from(observer_0, observer, gives_up);
  f.advance(100ms);
  CHECK(f.received[observer_0].back().stop);
  CHECK(f.received[observer_0].back().failed.value().text == "the user had enough");
  // A member that missed the stop asks again.
  f.received[server_0].clear();
  f.report_from(server_0, server, server_status{});
  REQUIRE_FALSE(f.received[server_0].empty());
  CHECK(f.received[server_0].back().stop);
  f.advance(2000ms);
  f.received[server_0].clear();
  f.report_from(server_0, server, server_status{});
  CHECK(f.received[server_0].empty());
}

TEST_CASE("a_coordinator_ends_at_once_when_all_have_left_a_stopped_job") {
  fixture f;
  const auto observer = f.spawn_member(observer_0);
  const auto server = f.spawn_member(server_0);
  f.report_from(server_0, server, server_status{});
  observer_status gives_up;
  gives_up.failed = failure{errc::job_failed, "the user had enough"};
  f.report_from(observer_0, observer, gives_up);
  f.send(f.service, lost_atom_v, server_0);
  f.advance(100ms);
  f.received[observer_0].clear();
  f.report_from(observer_0, observer, gives_up);
  CHECK(f.received[observer_0].empty());
}

TEST_CASE("the_state_is_stored_before_anything_is_ordered") {
  const storage::temporary_directory folder;
  for (std::uint64_t term = 1; term <= 3; ++term) {
    coordinator_setup setup;
    auto store = storage::coordinator_store::open(folder.path());
    REQUIRE(store);
    setup.store = *std::move(store);
    fixture f{setup};
    CHECK(setup.store->load()->term == term);
    CHECK(setup.store->load()->job == fingerprint(f.job));
    const auto observer = f.spawn_member(observer_0);
    f.report_from(observer_0, observer, observer_status{});
    f.advance(4000ms, 50ms);
    f.report_from(observer_0, observer, observer_status{});
    REQUIRE_FALSE(f.received[observer_0].empty());
    CHECK(f.received[observer_0].back().term == term);
  }
}

TEST_CASE("a_state_that_cannot_be_stored_fails_the_job_before_anything_is_ordered") {
  const storage::temporary_directory folder;
  auto store = storage::coordinator_store::open(folder.path());
  REQUIRE(store);
  coordinator_setup setup;
  setup.store = *std::move(store);
  const no_file_may_grow full_disk;
  fixture f{setup};
  const auto server = f.spawn_member(server_0);
  f.report_from(server_0, server, server_status{});
  REQUIRE_FALSE(f.received[server_0].empty());
  for (const auto& what : f.received[server_0]) {
    CHECK(what.stop);
    CHECK(what.failed.value().text.find("cannot store the coordinator's state: ") == 0);
  }
}

TEST_CASE("a_coordinator_that_lost_the_lead_says_nothing_more_and_ends") {
  coordinator_setup setup;
  const auto store = std::make_shared<contested_store>();
  setup.store = store;
  fixture f{setup};
  const auto observer = f.spawn_member(observer_0);
  f.report_from(observer_0, observer, observer_status{});
  f.advance(4000ms, 50ms);
  f.report_from(observer_0, observer, observer_status{});
  REQUIRE_FALSE(f.received[observer_0].empty());
  f.received[observer_0].clear();
  CHECK_FALSE(f.end_reason());
  store->lead_lost = true;
  f.report_from(observer_0, observer, observer_status{});
  CHECK(f.received[observer_0].empty());
  CHECK(f.end_reason() == errc::fenced);
}

TEST_CASE("a_coordinator_whose_state_is_fenced_off_orders_nothing_and_ends") {
  coordinator_setup setup;
  const auto store = std::make_shared<contested_store>();
  store->saves_refused = true;
  setup.store = store;
  fixture f{setup};
  const auto observer = f.spawn_member(observer_0);
  f.report_from(observer_0, observer, observer_status{});
  f.advance(4000ms, 50ms);
  CHECK(f.received[observer_0].empty());
  CHECK(f.end_reason() == errc::fenced);
}

} // namespace coordinator_actor_test
