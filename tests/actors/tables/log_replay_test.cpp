#include "actors/tables/log_replay.hpp"

#include "actors/protocol/server/shard.hpp"

#include "doctest/doctest.h"

#include <cstring>
#include <limits>

namespace troupe::log_replay_test {

namespace {

constexpr std::uint64_t size = 4096; ///< One block.

job_spec sample_job(consistency_mode mode) {
  job_spec job;
  job.name = "test";
  job.partitions = 4;
  job.samples = 100;
  job.batch_samples = 1;
  job.workers = 2;
  table_spec table;
  table.name = "w";
  table.shape = {size};
  table.sync.mode = mode;
  table.optimizer.kind = optimizer_kind::momentum;
  table.init = {initializer_kind::uniform, 0.5f};
  job.tables = {table};
  return job;
}

std::shared_ptr<const push_request> push_of(std::uint64_t batch, float element) {
  const auto values = std::make_shared<std::vector<float>>(size, element);
  push_request push;
  push.step = {{static_cast<std::uint32_t>(batch % 2)}, {7}, {}, {batch}, batch / 2};
  push.tables = {{0}};
  push.pieces = {{{{0}, 0, size}, {values, values->data()}}};
  return std::make_shared<const push_request>(std::move(push));
}

/// A running replica: its log, its values and its applied batches.
struct live_replica {
  explicit live_replica(job_spec what)
      : job(std::move(what)), values(std::make_shared<table_store>(job, here(), pool)),
        state(job, {}, fresh()) {}

  static std::vector<partition_id> here() { return {{0}, {1}, {2}, {3}}; }
  static std::vector<shard_partition> fresh() {
    std::vector<shard_partition> all;
    for (const auto id : here())
      all.push_back({id, 0, {batch_set{}}});
    return all;
  }

  void take(const log_entry& entry) {
    entry_header header{{}, entry.tables, 0};
    std::vector<const push_request*> pushes;
    for (const auto& push : entry.pushes) {
      header.steps.push_back(push->step);
      pushes.push_back(push.get());
    }
    for (const auto& push : entry.pushes)
      REQUIRE(values->check(*push));
    shard_effects effects;
    state.append(header);
    state.commit(effects);
    if (auto done = values->apply(std::get<apply_effect>(effects.back()), pushes); done)
      state.applied(effects);
    else
      state.discarded(done.error(), effects);
    log.push_back(entry);
  }

  job_spec job;
  std::shared_ptr<buffer_pool> pool = std::make_shared<buffer_pool>();
  std::shared_ptr<table_store> values;
  shard state;
  std::vector<log_entry> log;
};

std::vector<float> content(const table_store& store, const std::vector<table_id>& previous = {}) {
  pull_request all;
  all.ranges = {{{0}, 0, size}};
  std::vector<float> elements;
  for (const auto& x : store.read(all, previous).pieces)
    elements.insert(elements.end(), x.values.get(), x.values.get() + x.where.count);
  return elements;
}

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

} // namespace

TEST_CASE("what a replica kept makes the state that it had") {
  live_replica live{sample_job(consistency_mode::asp)};
  for (std::uint64_t batch = 0; batch < 5; ++batch)
    live.take({{push_of(batch, 0.5f + static_cast<float>(batch))}, {{0}}});
  storage::local_state kept{{1, {}, {}}, live.values->pin(live.state.partitions()), {}};
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  for (std::uint64_t batch : {9, 5, 8})
    live.take({{push_of(batch, batch == 5 ? nan : -1.0f)}, {{0}}});
  kept.log = {live.log[3], live.log[4]}; // The base has these entries.
  kept.log.insert(kept.log.end(), live.log.begin() + 5, live.log.end());
  kept.log.push_back(live.log.back()); // This entry was not applied when the next log began.

  const auto past = replay_log(live.job, kept, live.pool);
  REQUIRE(past);
  CHECK(same_bytes(content(*past->values), content(*live.values)));
  REQUIRE(past->partitions.size() == 4);
  CHECK(past->partitions[0].version == live.state.version());
  CHECK(past->partitions[0].applied[0] == live.state.partitions()[0].applied[0]);
  CHECK_FALSE(past->partitions[0].applied[0].contains({5}));
}

TEST_CASE("a bsp clock that was applied last can be read as before it") {
  live_replica live{sample_job(consistency_mode::bsp)};
  storage::local_state kept{{1, {}, {}}, live.values->pin(live.state.partitions()), {}};
  for (std::uint64_t clock = 0; clock < 3; ++clock)
    live.take({{push_of(2 * clock, 1.0f), push_of(2 * clock + 1, 3.0f)}, {{0}}});
  kept.log = live.log;
  const auto past = replay_log(live.job, kept, live.pool);
  REQUIRE(past);
  CHECK(same_bytes(content(*past->values), content(*live.values)));
  CHECK(same_bytes(content(*past->values, {{0}}), content(*live.values, {{0}})));
  CHECK_FALSE(same_bytes(content(*past->values, {{0}}), content(*live.values)));
}

TEST_CASE("a log of another job is refused") {
  live_replica live{sample_job(consistency_mode::asp)};
  storage::local_state kept{{1, {}, {}}, live.values->pin(live.state.partitions()), {}};
  auto odd = *push_of(1, 1.0f);
  odd.pieces[0].where.first = size;
  kept.log = {{{std::make_shared<const push_request>(odd)}, {{0}}}};
  const auto refused = replay_log(live.job, kept, live.pool);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::damaged);
}

} // namespace troupe::log_replay_test
