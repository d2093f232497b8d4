// Tests trainers and caches of values with tables that take no steps.
#include "actors/training/cached_values.hpp"
#include "actors/training/gradient_computer.hpp"
#include "actors/training/local_steps.hpp"
#include "tests/actors/router_fixture.hpp"
#include "tests/actors/tiny_training.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace frozen_tables_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// Returns a job of tables "a", which is frozen, and "b".
job_spec half_frozen() {
  auto job = routed_job();
  job.tables[0].frozen = true;
  return job;
}

pull_reply whole_answer(const job_spec& job) { return answer_to(whole_pull(job), 1); }

/// A trainer whose gradients could stay on a device.
class device_trainer final : public trainer {
public:
  double gradient(const batch& work, const_tensors, mutable_tensors gradients) override {
    work.ready(0);
    std::ranges::fill(gradients[1], 2.0f);
    work.ready(1);
    return 1.0;
  }
  std::optional<device_gradient> gradient_on_device(const batch&, const_tensors,
                                                    const value_identity&) override {
    FAIL("a job with a frozen table keeps no gradients on devices");
    return std::nullopt;
  }
};

} // namespace

TEST_CASE("a_frozen_table_has_no_gradient") {
  auto job = half_frozen();
  job.tables[1].optimizer.clip_norm = 1;
  gradient_computer computer{job, [] { return std::make_unique<device_trainer>(); }, true};
  std::vector<std::uint32_t> early;
  const auto made =
    computer.compute({0, {3}, {numbers(10'000), numbers(3)}, {}, 5, {}},
                     [&](std::uint32_t table, std::span<const float>) { early.push_back(table); });
  CHECK_FALSE(made.failed);
  CHECK(made.finite);
  REQUIRE(made.pieces.size() == 1);
  CHECK(made.pieces[0].where == range{{1}, 0, 3});
  CHECK(made.norm == doctest::Approx(std::sqrt(12.0)));
  CHECK(early == std::vector<std::uint32_t>{1});
}

TEST_CASE("values_of_a_frozen_table_are_held_after_the_first_pull") {
  const auto job = half_frozen();
  buffer_pool pool;
  const auto empty = empty_cache(job);
  CHECK(lacks_frozen(job, *empty));
  const auto first = hold(job, *empty, whole_answer(job), pool);
  REQUIRE(first);
  CHECK((*first)->ranges == std::vector<range>{{{1}, 0, 3}}); // With delta pulls.
  const auto kept = frozen_cache(job, **first);               // Without.
  CHECK_FALSE(lacks_frozen(job, *kept));
  CHECK(kept->ranges == std::vector<range>{{{1}, 0, 3}});
  CHECK(kept->tables[1] == nullptr);

  pull_request rest;
  rest.ranges = kept->ranges;
  const auto next = hold(job, *kept, answer_to(rest, 2), pool);
  REQUIRE(next);
  CHECK((*next)->tables[0] == (*first)->tables[0]); // Both share the memory.
  CHECK((*next)->tables[1].get()[2] == 2);
  CHECK_FALSE(hold(job, *empty, answer_to(rest, 2), pool)); // The frozen table was never there.
  CHECK_FALSE(hold(job, *kept, whole_answer(job), pool));   // It was not asked for.
}

TEST_CASE("a_job_without_frozen_tables_lacks_none") {
  const auto job = routed_job();
  buffer_pool pool;
  CHECK_FALSE(lacks_frozen(job, *empty_cache(job)));
  const auto whole = hold(job, *empty_cache(job), whole_answer(job), pool);
  REQUIRE(whole);
  CHECK((*whole)->ranges.size() == 2);
  CHECK(frozen_cache(job, **whole)->ranges == empty_cache(job)->ranges);
}

TEST_CASE("a_client_of_some_tables_holds_these_alone") {
  const auto job = routed_job();
  const std::vector<table_id> last{{1}};
  buffer_pool pool;
  const auto empty = empty_cache(job, last);
  CHECK(empty->ranges == std::vector<range>{{{1}, 0, 3}});
  pull_request some;
  some.ranges = empty->ranges;
  const auto held = hold(job, *empty, answer_to(some, 2), pool);
  REQUIRE(held);
  CHECK((*held)->tables[0] == nullptr);
  CHECK((*held)->tables[1].get()[2] == 2);
  CHECK_FALSE(hold(job, *empty, whole_answer(job), pool)); // The other table was not asked for.
}

TEST_CASE("local_steps_read_frozen_tables_where_they_are") {
  const std::vector<float> teacher{1, 2, 3}, student{5};
  std::vector<float> gradient(1);
  int steps = 0;
  const auto model = take_local_steps(
    std::make_unique<scripted_trainer>(
      [&](const batch&, const_tensors parameters, mutable_tensors gradients) {
        CHECK(parameters[0].data() == teacher.data());
        CHECK(gradients[0].empty());
        gradients[1][0] = parameters[0][2];
        ++steps;
        return 0.0;
      }),
    {.steps = 2, .optimizer = {.kind = optimizer_kind::adam, .learning_rate = 0.5f}}, 2);
  const std::vector<std::uint32_t> samples{1, 2, 3, 4};
  batch work;
  work.samples = samples;
  const std::vector<std::span<const float>> read{teacher, student};
  const std::vector<std::span<float>> write{{}, gradient};
  model->gradient(work, read, write);
  CHECK(steps == 2);
  CHECK(gradient[0] == doctest::Approx(1.0)); // Two steps of adam with an equal gradient.
}

} // namespace frozen_tables_test
