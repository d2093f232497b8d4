#include "actors/protocol/gossip/collector.hpp"

#include "doctest/doctest.h"

#include <string>
#include <utility>
#include <vector>

namespace troupe::collector_test {

namespace {

using namespace std::chrono_literals;
using ids = std::vector<worker_id>;

constexpr member_id self{role::server, 0, {77}};
constexpr std::uint32_t peers = 4;

batch_set batches(std::vector<std::uint64_t> some) {
  batch_set made;
  for (const auto each : some)
    made.insert({each});
  return made;
}

/// The chain of a job as the coordinator describes it.
desired_server wanted(std::uint64_t generation, bool is_new, std::uint64_t base = 0,
                      std::uint64_t checkpoint = 0) {
  desired_server what;
  chain_config newest{{5}, {generation}, {self}, {}};
  desired_chain chain;
  chain.shard = {0};
  chain.record.base_checkpoint = base;
  if (is_new)
    chain.record.proposed = newest;
  else
    chain.record.active = newest;
  what.chains = {chain};
  what.workers = {{{0}, {1}, 3, false}, {{1}, {2}, 4, true}};
  what.checkpoint = checkpoint;
  return what;
}

struct test_collector {
  collector decider{self, *neighbour_graph::ring(peers)};
  time_point now = 10s;

  collector_effects reconcile(const desired_server& what) {
    collector_effects effects;
    decider.reconcile(what, now, effects);
    return effects;
  }
  collector_effects tick() {
    collector_effects effects;
    decider.tick(now, effects);
    return effects;
  }
  /// Begins a generation, and loads its values.
  void begin(bool is_new, std::uint64_t checkpoint = 0) {
    const auto effects = reconcile(wanted(1, is_new, 0, checkpoint));
    REQUIRE_FALSE(effects.empty());
    decider.loaded(std::get<load_values_effect>(effects.front()).load, batch_set{}, now);
  }
  bool copied(std::uint32_t peer, std::uint64_t incarnation,
              std::vector<std::uint64_t> applied = {}) {
    return decider.copied({peer}, {incarnation}, batches(std::move(applied)));
  }
  bool serves() const { return decider.serves(now); }
  replica_status report() const { return decider.report(now); }
};

std::vector<std::string> lines(const collector_effects& effects) {
  std::vector<std::string> all;
  for (const auto& each : effects)
    all.push_back(std::get<graph_cut_effect>(each).text);
  return all;
}

} // namespace

TEST_CASE("a generation begins with the load of its base checkpoint, once") {
  test_collector x;
  CHECK(x.reconcile({}).empty()); // No chain yet.
  const auto effects = x.reconcile(wanted(1, true, 6));
  REQUIRE(effects.size() == 1);
  const auto load = std::get<load_values_effect>(effects.front());
  CHECK(load.checkpoint == 6);
  CHECK(x.reconcile(wanted(1, true, 6)).empty());
  CHECK(x.reconcile(wanted(1, false, 6)).empty()); // The proposed configuration is active now.
  CHECK_FALSE(x.serves());
  x.decider.loaded(load.load, batches({0, 1, 2}), x.now);
  CHECK(x.serves());
  CHECK(x.decider.applied() == batches({0, 1, 2}));
  CHECK(x.decider.generation() == generation_id{1});
}

TEST_CASE("a chain without this incarnation of the collector is not loaded") {
  test_collector x;
  auto what = wanted(1, true);
  what.chains.front().record.proposed->members = {{role::server, 0, {78}}};
  CHECK(x.reconcile(what).empty());
  CHECK(x.report().status.generation == generation_id{});
}

TEST_CASE("a new job serves its loaded values at once, and a restarted collector later") {
  test_collector fresh;
  fresh.begin(true);
  CHECK(fresh.serves());
  CHECK_FALSE(fresh.report().recovered);

  test_collector restarted;
  restarted.begin(false);
  CHECK_FALSE(restarted.serves());
  CHECK_FALSE(restarted.report().status.complete);
  CHECK(restarted.report().clocks.empty());
  restarted.copied(2, 9, {0, 1, 5}); // Peers send their copies meanwhile.
  restarted.now += 999ms;
  CHECK_FALSE(restarted.serves());
  restarted.now += 1ms;
  CHECK(restarted.serves());
  CHECK(restarted.report().status.complete);
  CHECK(restarted.report().recovered);
  CHECK(restarted.decider.applied() == batches({0, 1, 5}));
  CHECK(restarted.decider.in_mean() == ids{{2}});
}

TEST_CASE("the answer to an earlier load has no effect") {
  test_collector x;
  const auto first = std::get<load_values_effect>(x.reconcile(wanted(1, true, 3)).front());
  const auto second = std::get<load_values_effect>(x.reconcile(wanted(2, false, 4)).front());
  CHECK(second.load != first.load);
  CHECK(second.checkpoint == 4);
  x.decider.loaded(first.load, batches({0}), x.now);
  CHECK(x.decider.applied().size() == 0);
  x.decider.loaded(first.load, failure{errc::damaged, "gone"}, x.now);
  CHECK_FALSE(x.report().failed);
  x.now += 1h;
  CHECK_FALSE(x.serves());
  x.decider.loaded(second.load, batches({1}), x.now);
  x.now += 1s;
  CHECK(x.serves());
  CHECK(x.decider.applied() == batches({1}));
}

TEST_CASE("a checkpoint that cannot be read is named until the next generation") {
  test_collector x;
  auto load = std::get<load_values_effect>(x.reconcile(wanted(1, false, 3)).front());
  x.decider.loaded(load.load, failure{errc::damaged, "checkpoint 3 is damaged"}, x.now);
  x.now += 1h;
  CHECK_FALSE(x.serves());
  REQUIRE(x.report().failed);
  CHECK(x.report().failed->text == "checkpoint 3 is damaged");
  CHECK(x.report().unreadable == 3);
  load = std::get<load_values_effect>(x.reconcile(wanted(2, false, 2)).front());
  CHECK(load.checkpoint == 2);
  CHECK_FALSE(x.report().failed);
  CHECK(x.report().unreadable == 0);
}

TEST_CASE("applied batches are those of the checkpoint and of all copies that ever came") {
  test_collector x;
  const auto load = std::get<load_values_effect>(x.reconcile(wanted(1, true, 1)).front());
  x.copied(0, 1, {2, 4});
  x.decider.loaded(load.load, batches({0, 1}), x.now);
  x.copied(1, 1, {3});
  x.copied(0, 2, {0, 1}); // A successor of peer 0, which has none of its batches.
  CHECK(x.decider.applied() == batches({0, 1, 2, 3, 4}));
  CHECK(x.report().applied == batches({0, 1, 2, 3, 4}));
  CHECK(x.report().version == 5);
  CHECK_FALSE(x.copied(0, 1, {9})); // It was replaced.
  CHECK(x.decider.applied() == batches({0, 1, 2, 3, 4}));
}

TEST_CASE("a copy leaves the mean when one of its peer's successor comes") {
  test_collector x;
  CHECK(x.decider.in_mean().empty()); // The loaded values count.
  CHECK(x.copied(2, 1));
  CHECK(x.copied(0, 1));
  CHECK(x.decider.in_mean() == ids{{0}, {2}});
  CHECK(x.copied(2, 1)); // Renewed.
  CHECK(x.copied(2, 5));
  CHECK(x.decider.in_mean() == ids{{0}, {2}});
  CHECK_FALSE(x.copied(2, 1)); // It was under way while the successor sent its own.
  CHECK(x.copied(2, 5));
  CHECK(x.copied(2, 6));
  CHECK_FALSE(x.copied(2, 5));
  CHECK_FALSE(x.copied(2, 1));
  CHECK(x.copied(0, 5)); // Another peer's incarnations do not count.
}

TEST_CASE("a copy leaves the mean when the others were renewed 30 times since") {
  test_collector x;
  for (const std::uint32_t peer : {0u, 1u, 2u})
    x.copied(peer, 1);
  for (int i = 0; i < 29; ++i)
    for (const std::uint32_t peer : {0u, 2u})
      x.copied(peer, 1);
  x.copied(0, 1); // Peer 2 came behind it at the beginning.
  CHECK(x.decider.in_mean() == ids{{0}, {1}, {2}});
  x.copied(0, 1);
  CHECK(x.decider.in_mean() == ids{{0}, {2}});
  x.copied(1, 1); // It was slow, and is back.
  CHECK(x.decider.in_mean() == ids{{0}, {1}, {2}});

  test_collector alone;
  for (int i = 0; i < 100; ++i)
    alone.copied(3, 1);
  CHECK(alone.decider.in_mean() == ids{{3}});
}

TEST_CASE("a checkpoint is written once, and when the mean may be read") {
  test_collector x;
  x.begin(false, 1); // A restart: copies of peers come in the next second.
  CHECK(x.tick().empty());
  x.now += 500ms;
  CHECK(x.tick().empty());
  x.now += 500ms;
  auto effects = x.tick();
  REQUIRE(effects.size() == 1);
  CHECK(std::get<write_mean_effect>(effects.front()).checkpoint == 1);
  CHECK(x.tick().empty());
  CHECK(x.reconcile(wanted(1, false, 0, 1)).empty());
  CHECK(x.report().part.checkpoint == 0);
  x.decider.written(1, checkpoint_part{1, {0}, {}, 12});
  CHECK(x.report().part.checkpoint == 1);
  CHECK(x.report().part.version == 12);

  effects = x.reconcile(wanted(1, false, 0, 2));
  REQUIRE(effects.size() == 1);
  CHECK(std::get<write_mean_effect>(effects.front()).checkpoint == 2);
  x.decider.written(2, failure{errc::io_failed, "no space left"});
  CHECK(x.report().part.checkpoint == 1);
  CHECK(x.report().checkpoint_failed == 2);
  CHECK(x.report().checkpoint_failure == "no space left");
  CHECK(x.reconcile(wanted(1, false, 0, 2)).empty()); // The coordinator asks for another one.
  CHECK(x.reconcile(wanted(1, false, 0, 3)).size() == 1);
}

TEST_CASE("the mean of an old generation is not written in a new one before its values are there") {
  test_collector x;
  x.begin(true);
  const auto effects = x.reconcile(wanted(2, false, 1, 4));
  REQUIRE(effects.size() == 1);
  const auto load = std::get<load_values_effect>(effects.front());
  CHECK_FALSE(x.serves());
  CHECK(x.tick().empty());
  x.decider.loaded(load.load, batches({0}), x.now);
  x.now += 1s;
  REQUIRE(x.tick().size() == 1);
}

TEST_CASE("no pull waits for a worker that the collector has not heard") {
  test_collector x;
  x.begin(true);
  REQUIRE(x.report().clocks.size() == 2);
  for (const auto& each : x.report().clocks)
    CHECK(each.known);
  CHECK(x.report().clocks[0].clock == 3);
  CHECK(x.report().status.config == config_id{});
  CHECK(x.report().status.sealed == config_id{5});
}

TEST_CASE("a death that cuts the graph is told once, with its parts, and its end") {
  test_collector x;
  const auto joined = [&](std::uint32_t peer) {
    collector_effects effects;
    x.decider.joined({peer}, effects);
    return lines(effects);
  };
  const auto lost = [&](std::uint32_t peer) {
    collector_effects effects;
    x.decider.lost({peer}, effects);
    return lines(effects);
  };
  using texts = std::vector<std::string>;
  const texts cut{"deaths cut the neighbour graph: the parts 1 | 3 do not mix"};
  for (const std::uint32_t peer : {0u, 2u, 1u})
    CHECK(joined(peer).empty());
  CHECK(lost(0).empty()); // Not all have been there: the job begins.
  CHECK(joined(0).empty());
  CHECK(joined(3).empty());
  CHECK(lost(2).empty()); // A ring without one peer is a path.
  CHECK(lost(0) == cut);
  CHECK(lost(3) == texts{""}); // Peer 1 is alone, and is one part.
  CHECK(joined(3) == cut);
  CHECK(joined(2) == texts{""});
  CHECK(joined(0).empty());
}

TEST_CASE("the mean changes no more when all batches are in a checkpoint") {
  collector decider{self, *neighbour_graph::ring(peers), {.batches = 3}};
  collector_effects effects;
  decider.reconcile(wanted(1, true), 10s, effects);
  REQUIRE(decider.loaded(std::get<load_values_effect>(effects.front()).load, batch_set{}, 10s));
  CHECK(decider.copied({0}, {1}, batches({0, 1})));
  effects.clear();
  decider.reconcile(wanted(1, true, 0, 7), 11s, effects);
  CHECK(effects.size() == 1);
  CHECK(decider.copied({1}, {2}, batches({2})));
  decider.reconcile(wanted(1, true, 0, 8), 12s, effects);
  CHECK(effects.size() == 2);
  CHECK_FALSE(decider.copied({0}, {1}, batches({0, 1})));
}

TEST_CASE("peers that want values get them when the mean may be used") {
  test_collector one;
  one.decider.wants({2});
  CHECK(one.decider.to_start(one.now).empty());
  one.begin(true);
  CHECK(one.decider.to_start(one.now) == ids{{2}});
  one.decider.wants({1});
  one.decider.started({2});
  CHECK(one.decider.to_start(one.now) == ids{{1}});
  collector_effects effects;
  one.decider.lost({1}, effects);
  CHECK(one.decider.to_start(one.now).empty());
}

} // namespace troupe::collector_test
