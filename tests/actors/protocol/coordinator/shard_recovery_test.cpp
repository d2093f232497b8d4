#include "actors/protocol/coordinator/shard_recovery.hpp"

#include "tests/actors/coordinator_fixture.hpp"

namespace troupe::shard_recovery_test {
namespace {

const member_id server{role::server, 0, {100}};

/// A job of one shard and one server.
struct fixture {
  explicit fixture(bool is_known, consistency_mode mode = consistency_mode::asp)
      : job(job_of_mode(mode, 1)), servers({}, std::vector<chain_metadata>(1)), batches(job),
        schedule(job, {}, 0), shards(job, {}, servers.records(), is_known, false) {
    servers.heard(server, {chain_status{}});
  }

  recovery_context context() {
    effects.clear();
    return {servers, schedule, batches, state, events, now, effects};
  }

  template <class Effect>
  std::ptrdiff_t count() const {
    return std::ranges::count_if(effects,
                                 [](const auto& x) { return std::holds_alternative<Effect>(x); });
  }

  static storage::checkpoint_search_result found(std::uint64_t checkpoint) {
    storage::checkpoint_search_result what;
    what.newest.emplace();
    what.newest->checkpoint = checkpoint;
    return what;
  }

  storage::coordinator_state state;
  job_spec job;
  placement servers;
  ledger batches;
  checkpoint_schedule schedule;
  event_journal events;
  time_point now{10s};
  coordinator_effects effects;
  shard_recovery shards;
};

TEST_CASE("a new shard begins with initial values, without a search") {
  fixture f{false};
  CHECK(f.shards.begin_generations(f.context()));
  CHECK(f.effects.empty());
  REQUIRE(f.servers.records()[0].proposed);
  CHECK(f.servers.records()[0].base_checkpoint == 0);
  CHECK_FALSE(f.shards.begin_generations(f.context()));
}

TEST_CASE("a shard with a history begins with the newest good checkpoint") {
  fixture f{true};
  CHECK_FALSE(f.shards.begin_generations(f.context()));
  CHECK(f.count<find_checkpoint_effect>() == 1);
  CHECK_FALSE(f.shards.begin_generations(f.context()));
  CHECK(f.effects.empty()); // The search is under way.
  const auto is_news = f.shards.on_found(fixture::found(7), f.context());
  REQUIRE(is_news);
  CHECK(*is_news);
  CHECK(f.count<persist_effect>() == 1);
  CHECK(f.state.committed == 7);
  CHECK(f.shards.begin_generations(f.context()));
  CHECK(f.servers.records()[0].base_checkpoint == 7);
}

TEST_CASE("a search that may succeed later is repeated after a second") {
  fixture f{true};
  f.shards.search(f.context());
  CHECK(f.shards.on_search_failed({errc::io_failed, "busy"}, f.context()));
  CHECK(f.count<event_effect>() == 1);
  f.now += 999ms;
  f.shards.search_again(f.context());
  CHECK(f.effects.empty());
  f.now += 1ms;
  f.shards.search_again(f.context());
  CHECK(f.count<find_checkpoint_effect>() == 1);
  CHECK(f.shards.on_search_failed({errc::io_failed, "busy"}, f.context()));
  CHECK(f.effects.empty()); // An event has told of it.
  CHECK_FALSE(f.shards.on_search_failed({errc::wrong_job, "another job"}, f.context()));
}

TEST_CASE("a committed checkpoint that is gone is an error") {
  fixture f{true};
  f.state.committed = 3;
  f.shards.search(f.context());
  CHECK_FALSE(f.shards.on_found({}, f.context()));
  CHECK_FALSE(*f.shards.on_found(fixture::found(3), f.context())); // No search is under way.
}

TEST_CASE("in bsp a lost shard takes all back, and the generation grows") {
  fixture f{true, consistency_mode::bsp};
  f.shards.search(f.context());
  REQUIRE(f.shards.on_found(fixture::found(7), f.context()));
  REQUIRE(f.shards.begin_generations(f.context()));
  replica_status status;
  status.status.generation = f.servers.records()[0].proposed->generation;
  status.unreadable = 7;
  status.failed = failure{errc::damaged, "damaged"};
  f.shards.hear(server, status, f.context());
  CHECK(f.shards.is_rolling_back());
  CHECK_FALSE(f.shards.is_settled());
  CHECK(f.state.generation.value == 1);
  CHECK(f.state.rolling_back);
  CHECK(f.count<persist_effect>() == 1);
  CHECK_FALSE(f.shards.begin_generations(f.context()));
  REQUIRE(f.count<find_checkpoint_effect>() == 1);
  CHECK(std::get<find_checkpoint_effect>(f.effects.front()).unreadable
        == std::vector<std::uint64_t>{7});
  CHECK_FALSE(*f.shards.on_found(fixture::found(7), f.context())); // It is not used again.
  CHECK(f.count<find_checkpoint_effect>() == 1);
}

} // namespace
} // namespace troupe::shard_recovery_test
