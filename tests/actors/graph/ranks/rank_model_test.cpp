#include "actors/graph/ranks/rank_model.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace troupe::rank_model_test {

namespace {

constexpr std::size_t weights = 9000; // More than one block.

job_spec job_of(optimizer_kind kind, std::uint32_t workers) {
  table_spec table;
  table.name = "w";
  table.shape = {weights};
  table.sync = {consistency_mode::bsp, 0};
  table.optimizer.kind = kind;
  table.optimizer.learning_rate = 0.25f;
  table.init = {initializer_kind::uniform, 1.0f};
  job_spec job;
  job.name = "test";
  job.partitions = 4;
  job.workers = workers;
  job.samples = 5;
  job.batch_samples = 1;
  job.epochs = 2;
  job.tables = {table};
  REQUIRE(validate(job));
  return job;
}

/// Returns d(loss)/d(w[i]) = w[i] / 2 + batch + i / 9000.
float slope(float weight, std::uint64_t batch, std::size_t i) {
  return weight / 2 + static_cast<float>(batch) + static_cast<float>(i) / weights;
}

class sloping final : public trainer {
public:
  double gradient(const batch& work, const_tensors parameters, mutable_tensors gradients) override {
    for (std::size_t i = 0; i < weights; ++i)
      gradients[0][i] = slope(parameters[0][i], work.id.value, i);
    if (work.id.value == bad)
      gradients[0][7] = std::numeric_limits<float>::quiet_NaN();
    return 1.5;
  }
  static inline std::uint64_t bad = ~std::uint64_t{0};
};

std::unique_ptr<trainer> make_sloping() { return std::make_unique<sloping>(); }

std::vector<float> parameters_of(const rank_model& model) {
  std::vector<float> all(weights * model.job().tables.size());
  model.read_parameters(all);
  return all;
}

/// Takes the step of one clock on all ranks.
void step_all(std::vector<std::unique_ptr<rank_model>>& ranks) {
  for (auto& rank : ranks)
    REQUIRE(rank->compute(false));
  const auto first = ranks[0]->sum();
  for (std::size_t other = 1; other < ranks.size(); ++other)
    for (std::size_t i = 0; i < first.size(); ++i)
      first[i] += ranks[other]->sum()[i];
  for (auto& rank : ranks) {
    std::ranges::copy(first, rank->sum().begin());
    REQUIRE(rank->step());
  }
}

std::vector<std::unique_ptr<rank_model>> ranks_of(const job_spec& job) {
  std::vector<std::unique_ptr<rank_model>> ranks;
  for (std::uint32_t rank = 0; rank < job.workers; ++rank)
    ranks.push_back(std::make_unique<rank_model>(job, make_sloping, rank));
  return ranks;
}

} // namespace

TEST_CASE("ranks_take_the_mean_of_a_clocks_slots_also_where_a_pass_ends") {
  const auto job = job_of(optimizer_kind::sgd, 2);
  auto ranks = ranks_of(job);
  const auto begun = parameters_of(*ranks[0]);
  std::vector<double> expected(begun.begin(), begun.end());
  // A pass of 5 batches has 3 clocks, the last one with one slot.
  for (const std::vector<std::uint64_t>& slots :
       std::vector<std::vector<std::uint64_t>>{{0, 1}, {2, 3}, {4}, {5, 6}, {7, 8}, {9}}) {
    CHECK_FALSE(ranks[0]->finished());
    CHECK_EQ(ranks[1]->done().value, slots[0]);
    step_all(ranks);
    for (std::size_t i = 0; i < weights; ++i) {
      double mean = 0;
      for (const auto batch : slots)
        mean += (expected[i] / 2 + static_cast<double>(batch) + static_cast<double>(i) / weights)
                / static_cast<double>(slots.size());
      expected[i] -= 0.25 * mean;
    }
  }
  CHECK(ranks[0]->finished());
  CHECK_EQ(ranks[0]->done().value, 10);
  const auto found = parameters_of(*ranks[0]);
  double furthest = 0;
  for (std::size_t i = 0; i < weights; ++i)
    furthest = std::max(furthest, std::abs(found[i] - expected[i]));
  CHECK(furthest < 1e-4);
  CHECK_EQ(ranks[0]->checksum(), ranks[1]->checksum());
}

TEST_CASE("a_rank_that_is_given_the_state_of_another_goes_on_with_the_same_bytes") {
  for (const auto kind : {optimizer_kind::sgd, optimizer_kind::momentum, optimizer_kind::adam}) {
    const auto job = job_of(kind, 2);
    auto ranks = ranks_of(job);
    step_all(ranks);
    step_all(ranks);
    auto late = std::make_unique<rank_model>(job, make_sloping, 1);
    CHECK_NE(late->checksum(), ranks[0]->checksum());
    const auto state = ranks[0]->state();
    CHECK_EQ(state.size(), late->state_floats());
    REQUIRE(late->take_state(state, ranks[0]->clock()));
    CHECK_EQ(late->checksum(), ranks[0]->checksum());
    const auto lost = std::exchange(ranks[1], std::move(late));
    step_all(ranks);
    step_all(ranks);
    CHECK_EQ(ranks[0]->checksum(), ranks[1]->checksum());
  }
}

TEST_CASE("a_rank_goes_on_from_its_images_with_the_same_bytes") {
  const auto job = job_of(optimizer_kind::adam, 1);
  auto ranks = ranks_of(job);
  step_all(ranks);
  auto again = ranks_of(job);
  REQUIRE(again[0]->restore(ranks[0]->images(), ranks[0]->clock()));
  CHECK_EQ(again[0]->checksum(), ranks[0]->checksum());
  for (const auto& image : ranks[0]->images()) {
    CHECK_EQ(image.applied.at(0), batch_set{batch_id{1}});
    CHECK_EQ(image.version, 1);
  }
  step_all(ranks);
  step_all(again);
  CHECK_EQ(again[0]->checksum(), ranks[0]->checksum());
}

TEST_CASE("a_gradient_that_is_not_finite_counts_as_zeros_and_is_told") {
  const auto job = job_of(optimizer_kind::sgd, 1);
  auto ranks = ranks_of(job);
  const auto before = parameters_of(*ranks[0]);
  sloping::bad = 0;
  REQUIRE(ranks[0]->compute(true));
  sloping::bad = ~std::uint64_t{0};
  const auto told = ranks[0]->step();
  REQUIRE(told);
  CHECK_EQ(told->unusable, 1);
  CHECK_EQ(told->stop, 1);
  CHECK(ranks[0]->refused());
  CHECK_EQ(parameters_of(*ranks[0]), before);
  CHECK_EQ(ranks[0]->clock(), 1);
}

TEST_CASE("a_trainer_whose_exception_has_an_empty_text_fails_the_rank") {
  struct silent final : trainer {
    double gradient(const batch&, const_tensors, mutable_tensors) override {
      throw std::runtime_error{""};
    }
  };
  const failure why{errc::job_failed, "std::runtime_error without a text"};
  const trainer_factory makers[] = {
    [] { return std::make_unique<silent>(); },
    []() -> std::unique_ptr<trainer> { throw std::runtime_error{""}; },
  };
  for (const auto& make : makers) {
    rank_model rank{job_of(optimizer_kind::sgd, 1), make, 0, nullptr, {}};
    const auto done = rank.compute(false);
    REQUIRE_FALSE(done);
    CHECK(done.error() == why);
  }
}

TEST_CASE("a_frozen_table_is_in_no_sum_and_keeps_its_bytes") {
  auto job = job_of(optimizer_kind::momentum, 2);
  const auto plain = job;
  auto teacher = job.tables[0];
  teacher.name = "teacher";
  teacher.frozen = true;
  teacher.optimizer = {};
  job.tables.push_back(teacher);
  CHECK_EQ(rank_model::sum_floats(job), rank_model::sum_floats(plain));
  auto ranks = ranks_of(job), others = ranks_of(plain);
  const auto before = parameters_of(*ranks[0]);
  step_all(ranks);
  step_all(others);
  auto late = std::make_unique<rank_model>(job, make_sloping, 1);
  REQUIRE(late->take_state(ranks[0]->state(), ranks[0]->clock()));
  ranks[1] = std::move(late);
  step_all(ranks);
  step_all(others);
  const auto after = parameters_of(*ranks[1]);
  const auto learned = parameters_of(*others[1]);
  REQUIRE_EQ(after.size(), 2 * weights);
  CHECK(std::ranges::equal(std::span{after}.first(weights), learned));
  CHECK(std::ranges::equal(std::span{after}.last(weights), std::span{before}.last(weights)));
}

} // namespace troupe::rank_model_test
