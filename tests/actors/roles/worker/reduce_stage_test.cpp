#include "actors/roles/worker/reduce_stage.hpp"
#include "actors/roles/worker/stage_actor.hpp"
#include "tests/actors/actor_fixture.hpp"
#include "tests/actors/router_fixture.hpp"

#include "doctest/doctest.h"

namespace reduce_stage_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

std::optional<fake_kv::push_answer> receive(const push_request&) { return push_reply{7, false}; }
std::optional<fake_kv::pull_answer> bring(const pull_request& asked) { return answer_to(asked, 7); }

/// A reducer whose workers 0 and 1 have their first values.
struct fixture : actor_fixture {
  fixture() : next(*this) {
    next.on_push(receive);
    begin();
  }

  void begin() {
    reduces = owned(spawn_stage(system, {.name = "reducer"},
                                make_reduce_stage(job, {.wait = 100ms}, tally), next.handle()));
    next.on_pull({});
    const auto first = pull(reduces, pull_of_query(0));
    const auto second = pull(reduces, pull_of_query(1));
    next.on_pull(bring);
    next.release();
    CHECK((first->reply && second->reply));
  }

  pull_request pull_of_query(std::uint32_t worker) const {
    auto made = whole_pull(job, worker);
    made.step.worker = {worker};
    return made;
  }
  push_request push_of(std::uint32_t worker, float norm = 2) const {
    auto made = whole_push(job, worker);
    made.step.worker = {worker};
    made.gradient_norm = norm;
    return made;
  }

  job_spec job = routed_job();
  fake_kv next;
  std::shared_ptr<reducer_tally> tally = std::make_shared<reducer_tally>(2);
  kv reduces;
};

} // namespace

TEST_CASE("a_reduce_stage_pushes_the_sum_of_what_its_workers_push") {
  fixture f;
  const auto first = f.push(f.reduces, f.push_of(0));
  CHECK(first->pending());
  CHECK(f.next.pushes().empty());
  const auto second = f.push(f.reduces, f.push_of(1));
  CHECK(first->reply == push_reply{7, false});
  CHECK(second->reply == push_reply{7, false});
  REQUIRE(f.next.pushes().size() == 1);
  const auto& sum = f.next.pushes().front();
  CHECK(sum.step.batch == batch_id{0});
  REQUIRE(sum.others.size() == 1);
  CHECK(sum.others.front() == f.push_of(1).step);
  REQUIRE(sum.pieces.size() == 2);
  for (const auto& piece : sum.pieces)
    for (std::uint64_t i = 0; i < piece.where.count; ++i)
      REQUIRE(piece.values.get()[i] == 2.0f * static_cast<float>(i));
  CHECK(f.tally->sums == 1);
  CHECK(f.tally->pushes_summed == 2);
}

TEST_CASE("a_reduce_stage_clips_each_push_before_it_adds_it") {
  fixture f;
  for (auto& table : f.job.tables)
    table.optimizer.clip_norm = 1;
  f.begin();
  f.push(f.reduces, f.push_of(0, 2.0f));
  f.push(f.reduces, f.push_of(1, 4.0f));
  REQUIRE(f.next.pushes().size() == 1);
  const auto& sum = f.next.pushes().front();
  CHECK(sum.gradient_norm == 0.0f);
  for (const auto& piece : sum.pieces)
    for (std::uint64_t i = 0; i < piece.where.count; ++i)
      REQUIRE(piece.values.get()[i] == 0.75f * static_cast<float>(i));
}

TEST_CASE("a_reduce_stage_brings_all_workers_the_same_values") {
  fixture f;
  const auto first = f.pull(f.reduces, f.pull_of_query(0));
  const auto second = f.pull(f.reduces, f.pull_of_query(1));
  REQUIRE((first->reply && second->reply));
  CHECK(f.next.pulls().size() == 3); // begin() made the first two.
  CHECK(f.next.pulls().back().others.size() == 1);
  CHECK(first->reply->pieces.front().values == second->reply->pieces.front().values);
}

TEST_CASE("a_reduce_stage_waits_for_a_worker_no_longer_than_it_was_told") {
  fixture f;
  const auto first = f.push(f.reduces, f.push_of(0));
  f.advance(90ms);
  CHECK(first->pending());
  f.advance(20ms);
  CHECK(first->reply == push_reply{7, false});
  CHECK(f.tally->left_out[1] == 1);
  worker_counters counters;
  count(*f.tally, 1, false, counters);
  CHECK(counters.left_out == 1);
  CHECK(f.next.pushes().front().others.empty());
}

TEST_CASE("a_reduce_stage_pushes_one_by_one_what_does_not_add_up") {
  fixture f;
  auto part = f.push_of(1);
  part.pieces.pop_back();
  const auto first = f.push(f.reduces, f.push_of(0));
  const auto second = f.push(f.reduces, part);
  CHECK((first->reply && second->reply));
  CHECK(f.next.pushes().size() == 2);
  CHECK(f.tally->sums == 0);
}

} // namespace reduce_stage_test
