#include "actors/roles/server/hogwild.hpp"
#include "tests/actors/actor_fixture.hpp"
#include "tests/actors/shard_fixture.hpp"

#include "doctest/doctest.h"

#include <cmath>
#include <thread>

namespace hogwild_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

job_spec hogwild_job() {
  auto job = job_of({{consistency_mode::hogwild, 0}}, 2, 4000);
  job.tables[0].optimizer.learning_rate = 1;
  return job;
}

push_request gradient(std::uint64_t batch, std::vector<float> elements) {
  static buffer_pool pool;
  push_request what;
  what.step.worker = {1};
  what.step.batch = {batch};
  what.tables = {{0}};
  auto copy = pool.floats(elements.size());
  std::copy(elements.begin(), elements.end(), copy.get());
  what.pieces = {{{{0}, 0, elements.size()}, copy}};
  return what;
}

std::vector<float> read(shared_tables& tables) {
  const auto pieces = tables.read({{{0}, 0, 4}});
  REQUIRE(pieces);
  const auto& values = pieces->at(0).values;
  return {values.get(), values.get() + 4};
}

} // namespace

TEST_CASE("a_shared_step_changes_the_values_and_marks_the_batch") {
  shared_tables tables{hogwild_job()};
  REQUIRE(tables.apply(gradient(3, {1, 2, 3, 4})));
  CHECK(read(tables) == std::vector<float>{-1, -2, -3, -4});
  CHECK(tables.batches_applied().contains({3}));
  CHECK(tables.counters().applied == 1);
  CHECK(tables.counters().pulls == 1);
}

TEST_CASE("shared_tables_begin_with_given_values_and_step_no_frozen_one") {
  auto job = job_of({{consistency_mode::hogwild, 0}, {consistency_mode::hogwild, 0}}, 2, 4000);
  job.tables[0].frozen = true;
  const auto values = std::make_shared<const std::vector<float>>(std::vector<float>{5, 6, 7, 8});
  shared_tables tables{job, {{0, values}}};
  CHECK(read(tables) == *values);
  const auto refused = tables.apply(gradient(0, {1, 2, 3, 4}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text == "a gradient of table 't0', which is frozen");
  CHECK(read(tables) == *values);
}

TEST_CASE("a_shared_step_that_is_refused_changes_nothing") {
  shared_tables tables{hogwild_job()};
  const auto bad = tables.apply(gradient(0, {1, std::nanf(""), 3, 4}));
  CHECK(bad.error().code == errc::non_finite);
  CHECK(bad.error().text == "worker 1 pushed a gradient that is not finite: table 't0'");
  CHECK(tables.apply(gradient(0, {1, 2})).error().code == errc::shape_mismatch);
  auto elsewhere = gradient(0, {1, 2, 3, 4});
  elsewhere.pieces[0].where.table = {1};
  CHECK(tables.apply(elsewhere).error().code == errc::shape_mismatch);
  CHECK(tables.read({{{0}, 1, 3}}).error().code == errc::shape_mismatch);
  CHECK(read(tables) == std::vector<float>{0, 0, 0, 0});
  CHECK(tables.batches_applied().size() == 0);
  CHECK(tables.counters().refused == 3);
}

TEST_CASE("threads_that_write_at_once_lose_at_most_updates_and_no_applied_batch") {
  shared_tables tables{hogwild_job()};
  std::vector<std::thread> writers;
  for (std::uint64_t first = 0; first < 2; ++first)
    writers.emplace_back([&tables, first] {
      for (auto batch = first; batch < 4000; batch += 2)
        (void)tables.apply(gradient(batch, {-1, -1, -1, -1}));
    });
  for (auto& writer : writers)
    writer.join();
  CHECK(tables.batches_applied().floor().value == 4000);
  for (const float x : read(tables)) {
    CHECK(x >= 1);
    CHECK(x <= 4000);
    CHECK(x == std::floor(x));
  }
}

TEST_CASE("a_hogwild_kv_answers_from_the_shared_tables") {
  actor_config config;
  caf::actor_system system{config};
  auto tables = std::make_shared<shared_tables>(hogwild_job());
  {
    const auto first = spawn_hogwild(system, tables);
    const auto second = spawn_hogwild(system, tables);
    caf::scoped_actor self{system};
    self->request(first, 10s, request{gradient(0, {1, 2, 3, 4}), {}})
      .receive([](const reply& answer) { CHECK_FALSE(answer.pushed->duplicate); },
               [](const caf::error& why) { FAIL(from_caf(why).text); });
    self->request(second, 10s, request{{}, pull_request{{}, false, {{{0}, 0, 4}}}})
      .receive(
        [](const reply& answer) { CHECK(answer.pulled->pieces.at(0).values.get()[3] == -4); },
        [](const caf::error& why) { FAIL(from_caf(why).text); });
    self->request(second, 10s, request{{}, pull_request{{}, false, {{{5}, 0, 4}}}})
      .receive([](const reply&) { FAIL("outside"); },
               [](const caf::error& why) { CHECK(from_caf(why).code == errc::shape_mismatch); });
    self
      ->request(second, 10s,
                request{gradient(1, {1, 1, 1, 1}), pull_request{{}, false, {{{0}, 1, 2}}}})
      .receive([](const reply&) { FAIL("a part"); },
               [](const caf::error& why) { CHECK(from_caf(why).code == errc::shape_mismatch); });
    CHECK_FALSE(tables->batches_applied().contains({1}));
    CHECK(read(*tables) == std::vector<float>{-1, -2, -3, -4});
  }
}

TEST_CASE("the_hogwild_member_reports_as_a_server_would") {
  actor_fixture f;
  fake_coordinator coordinator{f};
  const auto job = hogwild_job();
  auto tables = std::make_shared<shared_tables>(job);
  const auto server = f.owned(
    spawn_hogwild_server(f.system, {role::server, 0, {5}}, tables, coordinator.connector()));
  CHECK(coordinator.reports().size() == 1);
  CHECK(coordinator.reports()[0].job == fingerprint(job));
  CHECK(coordinator.last<server_status>().chains.empty());
  desired_server what;
  what.chains = {{{0}, {{{4}, {1}, {{role::server, 0, {5}}}, {}}, 0, {}}}};
  what.generation = {1};
  what.workers = {joiner(0)};
  coordinator.order(server, what);
  CHECK(coordinator.reports().size() == 2);
  REQUIRE(coordinator.last<server_status>().chains.size() == 1);
  const auto told = coordinator.last<server_status>().chains[0];
  CHECK(told.status == chain_status{{1}, {4}, {4}, true, false});
  REQUIRE(told.clocks.size() == 1);
  CHECK(told.clocks[0].known);
  coordinator.order(server, what);
  CHECK(coordinator.reports().size() == 2);
  REQUIRE(tables->apply(gradient(3, {1, 2, 3, 4})));
  f.advance(100ms);
  CHECK(coordinator.last<server_status>().chains.at(0).applied.contains({3}));
  coordinator.order(server, what, true);
  const auto count = coordinator.reports().size();
  f.advance(1000ms);
  CHECK(coordinator.reports().size() == count);
}

} // namespace hogwild_test
