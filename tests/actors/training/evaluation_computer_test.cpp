#include "actors/training/evaluation_computer.hpp"
#include "tests/actors/tiny_training.hpp"

#include "doctest/doctest.h"

#include <memory>
#include <stdexcept>
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
  CHECK_FALSE(made.failed);
  REQUIRE(made.found);
  CHECK(made.found->loss == 3.0);
  CHECK_FALSE(made.found->accuracy);
  CHECK(made.found->measures == std::vector<measure>{{"rmse", 2.0}});
}

TEST_CASE("an evaluation whose measure has a wrong name fails") {
  const auto made = evaluated_with("RMSE");
  CHECK_FALSE(made.found);
  CHECK(made.failed.value().text
        == "the measure 'RMSE' has a wrong name: use the characters a-z, 0-9 and _");
}

TEST_CASE("an exception with an empty text is a failed evaluation, wherever it is thrown") {
  /// Throws in keys() or in evaluate(), with an empty text.
  struct silent final : evaluator {
    explicit silent(bool in_keys) : in_keys_(in_keys) {}
    void keys(key_lists) override {
      if (in_keys_)
        throw std::runtime_error{""};
    }
    evaluation evaluate(const_tensors) override { throw std::runtime_error{""}; }
    bool in_keys_;
  };
  const failure why{errc::job_failed, "std::runtime_error without a text"};
  job_spec job;
  job.tables = {table_of("w", 1)};
  pull_reply answer;
  answer.pieces.push_back({{{0}, 0, 1}, buffer_pool{}.floats(1)});
  evaluation_computer in_evaluate{job, {{"test", [] { return std::make_unique<silent>(false); }}}};
  REQUIRE(in_evaluate.question());
  const auto made = in_evaluate.evaluate(7, answer);
  CHECK(made.failed == why);
  CHECK_FALSE(made.found);
  evaluation_computer in_keys{job, {{"test", [] { return std::make_unique<silent>(true); }}}};
  evaluation_computer in_maker{
    job, {{"test", []() -> std::unique_ptr<evaluator> { throw std::runtime_error{""}; }}}};
  for (auto* const each : {&in_keys, &in_maker}) {
    const auto asked = each->question();
    REQUIRE_FALSE(asked);
    CHECK(asked.error() == why);
  }
}

TEST_CASE("an evaluation without evaluators finds nothing") {
  evaluation_computer computer{job_spec{}, {}};
  REQUIRE(computer.question());
  const auto made = computer.evaluate(3, {});
  CHECK_FALSE(made.found);
  CHECK_FALSE(made.failed);
}

} // namespace evaluation_computer_test
