#include "actors/training/evaluation_computer.hpp"
#include "tests/actors/tiny_training.hpp"

#include "doctest/doctest.h"

#include <memory>
#include <string>

namespace evaluation_computer_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// Names its one measure as it is told.
class naming_evaluator final : public evaluator {
public:
  explicit naming_evaluator(std::string name) : name_(std::move(name)) {}
  evaluation evaluate(const_tensors parameters) override {
    return {.loss = parameters[0][0], .measures = {{name_, 2.0}}};
  }

private:
  std::string name_;
};

evaluation_message evaluated_with(const std::string& name) {
  job_spec job;
  job.tables = {table_of("w", 1)};
  evaluation_computer computer{
    job, {{"test", [=] { return std::make_unique<naming_evaluator>(name); }}}};
  const auto asked = computer.question();
  REQUIRE(asked);
  pull_reply answer;
  const auto values = buffer_pool{}.floats(1);
  *values = 3.0f;
  answer.pieces.push_back({asked->ranges.at(0), values});
  return computer.evaluate(7, answer);
}

} // namespace

TEST_CASE("an evaluation has the measures of the evaluator") {
  const auto made = evaluated_with("rmse");
  CHECK(made.number == 7);
  CHECK(made.failed.empty());
  REQUIRE(made.found);
  CHECK(made.found->loss == 3.0);
  CHECK_FALSE(made.found->accuracy);
  CHECK(made.found->measures == std::vector<measure>{{"rmse", 2.0}});
}

TEST_CASE("an evaluation whose measure has a wrong name fails") {
  const auto made = evaluated_with("RMSE");
  CHECK_FALSE(made.found);
  CHECK(made.failed == "the measure 'RMSE' has a wrong name: use the characters a-z, 0-9 and _");
}

TEST_CASE("an evaluation without evaluators finds nothing") {
  evaluation_computer computer{job_spec{}, {}};
  REQUIRE(computer.question());
  const auto made = computer.evaluate(3, {});
  CHECK_FALSE(made.found);
  CHECK(made.failed.empty());
}

} // namespace evaluation_computer_test
