#include "storage/etcd_store.hpp"

#include "tests/storage/etcd_fixture.hpp"

#include "doctest/doctest.h"

#include <future>
#include <mutex>

namespace troupe::storage::etcd_store_test {

using namespace std::chrono_literals;

namespace {

using clock = std::chrono::steady_clock;
using store_ptr = std::unique_ptr<etcd_store>;

double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

/// Collects the lines of a candidate; another thread can read them.
class story {
public:
  std::function<void(std::string)> log() {
    return [this](const std::string& line) {
      const std::lock_guard lock{mutex_};
      lines_.push_back(line);
    };
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock{mutex_};
    return lines_;
  }
  /// Returns true once a line contains `text`; false after 10 s.
  bool await(const std::string& text) const {
    for (int i = 0; i < 500; ++i) {
      for (const auto& line : lines())
        if (line.find(text) != std::string::npos)
          return true;
      ::poll(nullptr, 0, 20);
    }
    return false;
  }

private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

store_ptr campaign(const etcd_address& etcd, const std::string& who, story* told = nullptr) {
  auto made = etcd_store::campaign({etcd, who, told ? told->log() : nullptr});
  REQUIRE_MESSAGE(made, (made ? "" : made.error().text));
  return *std::move(made);
}

std::future<store_ptr> campaign_beside(const etcd_address& etcd, story& told) {
  return std::async(std::launch::async, [=, &told] { return campaign(etcd, "standby", &told); });
}

/// Calls mark_dead() until it succeeds, at most 20 times: each call has little time.
bool marked_dead(const etcd_address& etcd, const std::string& who) {
  for (int i = 0; i < 20; ++i)
    if (etcd_store::mark_dead(etcd, who))
      return true;
  return false;
}

const coordinator_state some_state{4, {2}, 77, {{0}, {1}, {1}}, {}, {}, {}, 12};

} // namespace

TEST_CASE("etcd: who leads keeps its lease, and a successor finds what was saved") {
  if (!etcd_cluster::is_installed())
    return;
  const etcd_cluster cluster{1, true};
  const etcd_address etcd{cluster.endpoints(), "job"};
  auto first = campaign(etcd, "first");
  const auto fresh = first->load();
  REQUIRE(fresh);
  CHECK(fresh->term == 0);
  REQUIRE(first->save(some_state));
  story told;
  auto standby = campaign_beside(etcd, told);
  REQUIRE(told.await("stands by"));
  CHECK(standby.wait_for(10s) == std::future_status::timeout); // Longer than a lease.
  CHECK(first->check_lead());
  REQUIRE(first->save({5, {3}, 77, {{1}}, {}, {}, {}, 13}));
  CHECK((*etcd_client{etcd.endpoints}.get("/troupe/job/leader", 2s))->bytes == "first");

  const auto ended_at = clock::now();
  first.reset();
  const auto second = standby.get();
  MESSAGE("takeover after " << seconds_since(ended_at) << " s");
  CHECK(told.lines() == std::vector<std::string>{"stands by", "leads"});
  const auto found = second->load();
  REQUIRE(found);
  CHECK(found->term == 5);
  CHECK(found->committed == 13);
  CHECK(found->shard_of == std::vector<shard_id>{{1}});
  CHECK(second->save({6, {3}, 77, {{1}}, {}, {}, {}, 13}));
}

TEST_CASE("etcd: a candidate says why it waits, and when it waits no longer") {
  if (!etcd_cluster::is_installed())
    return;
  etcd_cluster cluster{1};
  cluster.kill(0);
  std::promise<void> waited;
  std::vector<std::string> told;
  etcd_candidate who{{cluster.endpoints(), "job"}, "me", {}};
  who.waits = [&](const std::string& text) {
    if (told.empty())
      waited.set_value();
    told.push_back(text);
  };
  auto made = std::async(std::launch::async, [&] { return etcd_store::campaign(who); });
  waited.get_future().wait();
  cluster.start(0);
  REQUIRE(made.get());
  CHECK(told.front().starts_with("waits for etcd: etcd at 127.0.0.1:"));
  CHECK(told.back().empty());
}

TEST_CASE("etcd: a leader that is known to be dead is followed before its lease ends") {
  if (!etcd_cluster::is_installed())
    return;
  const etcd_cluster cluster{1, true};
  const etcd_address etcd{cluster.endpoints(), "job"};
  const auto first = campaign(etcd, "first");
  story told;
  auto standby = campaign_beside(etcd, told);
  REQUIRE(told.await("stands by"));
  CHECK(marked_dead(etcd, "another"));
  CHECK(standby.wait_for(1s) == std::future_status::timeout);
  CHECK(first->check_lead());
  CHECK(marked_dead(etcd, "first"));
  CHECK(standby.wait_for(20s) == std::future_status::ready);
  CHECK(marked_dead({cluster.endpoints(), "nobody's"}, "first"));
}

TEST_CASE("etcd: a deposed leader cannot save, whatever it believes") {
  if (!etcd_cluster::is_installed())
    return;
  const etcd_cluster cluster{1};
  const etcd_address etcd{cluster.endpoints(), "job"};
  const auto older = campaign(etcd, "older");
  REQUIRE(older->load());
  REQUIRE(older->save({4, {2}, 77, {}, {}, {}, {}, 12}));
  // Without the key there are two leaders for a moment.
  REQUIRE(etcd_client{etcd.endpoints}.write({{}, "/troupe/job/leader", std::nullopt}, 2s));
  const auto newer = campaign(etcd, "newer");
  REQUIRE(newer->load());
  REQUIRE(newer->save({5, {2}, 77, {}, {}, {}, {}, 12}));
  const auto refused = older->save({4, {2}, 77, {}, {}, {}, {}, 99});
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::fenced);
  CHECK(older->check_lead().error().code == errc::fenced);
  CHECK(newer->check_lead());
  CHECK(newer->load()->term == 5);
}

TEST_CASE("etcd: who was deposed in between cannot save even before its successor does") {
  if (!etcd_cluster::is_installed())
    return;
  const etcd_cluster cluster{1};
  const etcd_address etcd{cluster.endpoints(), "job"};
  const auto older = campaign(etcd, "older");
  REQUIRE(older->load());
  REQUIRE(etcd_client{etcd.endpoints}.write({{}, "/troupe/job/leader", std::nullopt}, 2s));
  const auto newer = campaign(etcd, "newer"); // `newer` has not saved yet.
  CHECK(older->save(some_state).error().code == errc::fenced);
  CHECK(newer->load()->term == 0);
}

TEST_CASE("etcd: a state that someone else wrote is not overwritten, also by the leader") {
  if (!etcd_cluster::is_installed())
    return;
  const etcd_cluster cluster{1};
  const etcd_address etcd{cluster.endpoints(), "job"};
  const auto store = campaign(etcd, "first");
  REQUIRE(store->load());
  REQUIRE(store->save(some_state));
  REQUIRE(etcd_client{etcd.endpoints}.write({{}, "/troupe/job/state", "theirs"}, 2s));
  CHECK(store->save({5, {2}, 77, {}, {}, {}, {}, 12}).error().code == errc::fenced);
  CHECK((*etcd_client{etcd.endpoints}.get("/troupe/job/state", 2s))->bytes == "theirs");
}

TEST_CASE("etcd: a leader whose key is removed notices") {
  if (!etcd_cluster::is_installed())
    return;
  const etcd_cluster cluster{1};
  const etcd_address etcd{cluster.endpoints(), "job"};
  const auto store = campaign(etcd, "first");
  REQUIRE(etcd_client{etcd.endpoints}.write({{}, "/troupe/job/leader", std::nullopt}, 2s));
  const auto began = clock::now();
  while (store->check_lead() && seconds_since(began) < 10)
    ::poll(nullptr, 0, 10);
  const auto noticed = store->check_lead();
  REQUIRE(!noticed);
  MESSAGE("noticed after " << seconds_since(began) << " s");
  CHECK(noticed.error().text.find("/troupe/job/leader") != std::string::npos);
}

TEST_CASE(
  "etcd: while it is lost a leader waits, acts until its lease ends, and then never again") {
  if (!etcd_cluster::is_installed())
    return;
  etcd_cluster cluster{1};
  const etcd_address etcd{cluster.endpoints(), "job"};
  const auto store = campaign(etcd, "first");
  REQUIRE(store->load());
  REQUIRE(store->save(some_state));
  cluster.kill(0);
  const auto began = clock::now();
  CHECK(store->check_lead());
  const auto refused = store->save({5, {2}, 77, {}, {}, {}, {}, 12});
  const auto waited = seconds_since(began);
  MESSAGE("gave up after " << waited << " s: " << (refused ? "" : refused.error().text));
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::fenced);
  CHECK(refused.error().text.find("cannot renew its lease") != std::string::npos);
  CHECK(waited > 0.5);
  CHECK(!store->check_lead());

  story told;
  auto standby = campaign_beside(etcd, told);
  CHECK(told.await("waits for etcd"));
  cluster.start(0);
  const auto next = standby.get();
  CHECK(!store->check_lead());
  CHECK(store->save(some_state).error().code == errc::fenced);
  CHECK(next->load()->committed == 12);
}

TEST_CASE("etcd: the loss of a member that follows is not noticed") {
  if (!etcd_cluster::is_installed())
    return;
  etcd_cluster cluster{3};
  const etcd_address etcd{cluster.endpoints(), "job"};
  const auto store = campaign(etcd, "first");
  REQUIRE(store->load());
  cluster.kill((cluster.leader() + 1) % 3);
  CHECK(store->save(some_state));
  CHECK(store->load()->committed == 12);
}

// The members' election can last longer than the lease.
TEST_CASE("etcd: the loss of the member that leads costs the lead at most, and nothing saved") {
  if (!etcd_cluster::is_installed())
    return;
  etcd_cluster cluster{3};
  const etcd_address etcd{cluster.endpoints(), "job"};
  auto store = campaign(etcd, "first");
  REQUIRE(store->load());
  REQUIRE(store->save(some_state));
  cluster.kill(cluster.leader());
  const auto saved = store->save({5, {2}, 77, {}, {}, {}, {}, 13});
  if (!saved) {
    CHECK(saved.error().code == errc::fenced);
    CHECK(!store->check_lead());
    store = campaign(etcd, "second");
  }
  const auto found = store->load();
  REQUIRE(found);
  // A save without an answer may have taken effect.
  CHECK((found->committed == 13 || (!saved && found->committed == 12)));
  CHECK(store->save({6, {2}, 77, {}, {}, {}, {}, 14}));
}

TEST_CASE("etcd: a run begins with nothing unless it resumes, and not beside another") {
  if (!etcd_cluster::is_installed())
    return;
  const etcd_cluster cluster{1};
  const etcd_address etcd{cluster.endpoints(), "job"};
  auto first = campaign(etcd, "127.0.0.1:4000");
  REQUIRE(first->load());
  REQUIRE(first->save(some_state));
  const auto refused = etcd_store::prepare(etcd, false);
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::in_use);
  CHECK(refused.error().text.find("'job' runs already, led by 127.0.0.1:4000")
        != std::string::npos);
  CHECK(etcd_store::prepare({etcd.endpoints, "other"}, false));
  auto resized = some_state;
  resized.servers = {{0}, {7}};
  REQUIRE(first->save(resized));
  first.reset();
  REQUIRE(etcd_store::prepare(etcd, true));
  CHECK(campaign(etcd, "again")->load()->committed == 12);
  CHECK(campaign(etcd, "again")->load()->servers.empty());
  REQUIRE(etcd_store::prepare(etcd, false));
  CHECK(campaign(etcd, "anew")->load()->term == 0);
}

TEST_CASE("etcd: a state that is none is reported, not started from nothing") {
  if (!etcd_cluster::is_installed())
    return;
  const etcd_cluster cluster{1};
  const etcd_address etcd{cluster.endpoints(), "job"};
  REQUIRE(etcd_client{etcd.endpoints}.write({{}, "/troupe/job/state", "?"}, 2s));
  CHECK(campaign(etcd, "first")->load().error().code == errc::damaged);
}

} // namespace troupe::storage::etcd_store_test
