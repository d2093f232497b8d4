#include "actors/training/replay.hpp"

#include "tests/actors/recorded_run.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>

namespace replay_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const std::vector<std::uint64_t> some_keys{0, 1, 2, 3, 4, 5, 6, 100, 101, 102, 7777};
constexpr consistency asp{consistency_mode::asp, 0};

std::vector<float> floats_of(const pull_reply& found) {
  std::vector<float> dense(9000);
  for (const auto& x : found.pieces)
    std::memcpy(dense.data() + x.where.first, x.values.get(), x.where.count * sizeof(float));
  for (const auto& x : found.rows)
    dense.insert(dense.end(), x.values.get(), x.values.get() + x.where.floats());
  return dense;
}

bool same_bytes(const std::vector<float>& x, const std::vector<float>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

storage::push_history history_of(const recorded_run& run) {
  auto read = storage::read_push_history(run.folder());
  REQUIRE(read);
  return *std::move(read);
}

/// Replays the history and reads `what` into `into`. Returns the error's text, or an empty text.
std::string replayed(storage::push_history history, const pull_request& what,
                     std::vector<float>& into, const trainer_factory& make = noisy_trainers(),
                     const std::vector<pure_stage>& stages = {}) {
  auto again = replay::begin(std::move(history), make, {}, {}, stages);
  if (!again)
    return again.error().text;
  if (auto ran = (*again)->run({}); !ran)
    return ran.error().text;
  CHECK((*again)->steps() == (*again)->steps_in_all());
  const auto found = (*again)->read(what);
  REQUIRE(found);
  into = floats_of(*found);
  return {};
}

/// Changes the signs of all values of a push or of a pull's answer.
template <class Message>
void negate(Message& what) {
  const auto change = [](float_ptr& values, std::size_t count) {
    const std::shared_ptr<float[]> own{new float[count]};
    std::transform(values.get(), values.get() + count, own.get(), std::negate<float>{});
    values = {own, own.get()};
  };
  for (auto& x : what.pieces)
    change(x.values, x.where.count);
  for (auto& x : what.rows)
    change(x.values, x.where.floats());
}

struct negative final : pass_through {
  void outgoing(request& what, stage_effects&) override {
    if (what.push)
      negate(*what.push);
  }
};

struct negative_values final : pass_through {
  void incoming(reply& what, stage_effects&) override {
    if (what.pulled)
      negate(*what.pulled);
  }
};

/// Asks for all values but the dense ones.
struct fewer_values final : pass_through {
  void outgoing(request& what, stage_effects&) override {
    if (what.pull)
      what.pull->ranges.clear();
  }
};

} // namespace

TEST_CASE("a_replayed_run_ends_in_the_same_bytes") {
  for (const auto& sync : {asp, consistency{consistency_mode::ssp, 2}})
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      CAPTURE(seed);
      recorded_run run{recorded_job(sync), seed};
      run.run(0);
      CHECK(run.staleness() > 0);
      std::vector<float> found;
      CHECK(replayed(history_of(run), run.question(some_keys), found) == "");
      CHECK(same_bytes(found, run.parameters(some_keys)));
    }
}

TEST_CASE("a replay passes each push and each answer through pure stages") {
  recorded_run run{recorded_job(asp), 1};
  run.run(0);
  std::vector<float> found;
  const auto with = [&](const std::vector<pure_stage>& stages) {
    return replayed(history_of(run), run.question(some_keys), found, noisy_trainers(), stages);
  };
  CHECK(with({{"same", [] { return std::make_unique<pass_through>(); }}}) == "");
  CHECK(same_bytes(found, run.parameters(some_keys)));
  CHECK(with({{"negative", [] { return std::make_unique<negative>(); }}}) == "");
  CHECK_FALSE(same_bytes(found, run.parameters(some_keys)));
  CHECK(with({{"back", [] { return std::make_unique<negative_values>(); }}}) == "");
  CHECK_FALSE(same_bytes(found, run.parameters(some_keys)));
  const pure_stage back{"back", [] { return std::make_unique<negative_values>(); }};
  CHECK(with({back, back}) == "");
  CHECK(same_bytes(found, run.parameters(some_keys)));
  const pure_stage twice{"twice", [] { return std::make_unique<negative>(); }};
  CHECK(with({twice, twice}) == "");
  CHECK(same_bytes(found, run.parameters(some_keys)));
  CHECK(with({{"fewer", [] { return std::make_unique<fewer_values>(); }}})
        == "the values of a pull do not cover the tables");
}

TEST_CASE("workers_that_died_between_two_chains_are_replayed_too") {
  std::uint64_t repeated = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    recorded_run run{recorded_job(asp), seed};
    run.run(5);
    repeated += run.repeated();
    std::vector<float> found;
    CHECK(replayed(history_of(run), run.question(some_keys), found) == "");
    CHECK(same_bytes(found, run.parameters(some_keys)));
  }
  CHECK(repeated > 0);
}

TEST_CASE("one_base_version_changed_is_noticed") {
  recorded_run run{recorded_job(asp), 1};
  run.run(0);
  auto history = history_of(run);
  auto& record = history.chains[0].applied[50];
  REQUIRE(record.base_version > 0);
  --record.base_version;
  std::vector<float> found;
  CHECK(replayed(history, run.question(some_keys), found) == "");
  CHECK(!same_bytes(found, run.parameters(some_keys)));
}

TEST_CASE("steps_in_another_order_are_noticed") {
  recorded_run run{recorded_job(asp), 1};
  run.run(0);
  auto history = history_of(run);
  std::swap(history.chains[1].applied.end()[-1].batch, history.chains[1].applied.end()[-2].batch);
  std::vector<float> found;
  const auto failed = replayed(history, run.question(some_keys), found);
  CHECK((!failed.empty() || !same_bytes(found, run.parameters(some_keys))));
}

TEST_CASE("a_gradient_of_values_that_are_never_there_is_named") {
  recorded_run run{recorded_job(asp), 1};
  run.run(0);
  auto history = history_of(run);
  auto& record = history.chains[0].applied[50];
  record.base_version = 1'000'000;
  std::vector<float> found;
  CHECK(replayed(history, run.question(some_keys), found)
        == "step 51 of shard 0 (batch " + std::to_string(record.batch.value) + " of worker "
             + std::to_string(record.worker.value)
             + ") was computed from version 1000000 of shard 0, which is not there before that "
               "step");
}

TEST_CASE("what_cannot_be_replayed_is_refused") {
  recorded_run run{recorded_job(asp), 1};
  run.run(0);
  const auto refused = [&](auto change) {
    auto history = history_of(run);
    change(history);
    std::vector<float> found;
    return replayed(std::move(history), run.question(some_keys), found);
  };
  CHECK(refused([](auto& x) { x.chains[1].base_checkpoint = 3; })
        == "shard 1 began again with checkpoint 3 in this run: a rollback cannot be "
           "replayed");
  CHECK(refused([](auto& x) { x.chains.push_back(x.chains[0]); })
        == "shard 0 began again with its initial values in this run: a rollback cannot "
           "be replayed");
  CHECK(refused([](auto& x) { x.chains.pop_back(); }) == "no server's record has shard 1");
  CHECK(refused([](auto& x) { x.chains[0].applied[3].batch.value = 1'000'000; })
        == "the record of shard 0 does not fit its job");
}

TEST_CASE("a_trainer_that_fails_ends_the_replay_with_its_text") {
  recorded_run run{recorded_job(asp), 1};
  run.run(0);
  std::vector<float> found;
  const auto none = [] { return std::unique_ptr<trainer>{}; };
  CHECK(replayed(history_of(run), run.question(some_keys), found, none)
        == "the graph's trainer factory made no trainer");
}

} // namespace replay_test
