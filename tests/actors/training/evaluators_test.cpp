#include "actors/training/evaluators.hpp"
#include "tests/actors/tiny_training.hpp"

#include "doctest/doctest.h"

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace evaluators_test {

using namespace troupe;
using namespace troupe::test;

namespace {

using number_list = std::vector<std::uint64_t>;

/// Needs some rows of table 1, and returns what the test sets. It notes the values that it gets.
struct told_evaluator final : evaluator {
  told_evaluator(number_list rows, evaluation result, std::vector<float>* seen)
      : rows_(std::move(rows)), result_(std::move(result)), seen_(seen) {}

  void keys(key_lists touched) override { touched[1] = rows_; }
  evaluation evaluate(const_tensors parameters) override {
    if (seen_ != nullptr)
      seen_->assign(parameters[1].begin(), parameters[1].end());
    return result_;
  }

  number_list rows_;
  evaluation result_;
  std::vector<float>* seen_;
};

named_evaluator node(const std::string& name, const evaluation& result, number_list rows = {},
                     std::vector<float>* seen = nullptr) {
  return {name, [=] { return std::make_unique<told_evaluator>(rows, result, seen); }};
}

named_evaluator broken_node(const std::string& name) {
  return {name, []() -> std::unique_ptr<evaluator> { throw std::runtime_error("no data"); }};
}

job_spec job_of_both() {
  job_spec job;
  job.tables = {table_of("w", 1), table_of("rows", 1)};
  job.tables[1].kind = table_kind::sparse;
  job.tables[1].width = 2;
  return job;
}

/// Returns two floats for each row: its key, and its key with a half.
std::vector<float> values_of(const row_keys& rows) {
  std::vector<float> values;
  for (const auto key : rows.span())
    values.insert(values.end(), {static_cast<float>(key), static_cast<float>(key) + 0.5f});
  return values;
}

/// Returns the text of the exception with which these nodes evaluate; empty: they do not throw.
std::string failure_of(std::vector<named_evaluator> nodes) {
  const std::vector<std::vector<float>> parameters(2);
  const std::vector<std::span<const float>> spans(parameters.begin(), parameters.end());
  evaluators all{std::move(nodes)};
  try {
    all.evaluate(spans);
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
  return "";
}

std::string text_of(const result<void>& checked) { return checked ? "" : checked.error().text; }

} // namespace

TEST_CASE("the first evaluator gives the result, and the others its further measures") {
  evaluators all{{node("test", {.loss = 1.0, .accuracy = 0.9, .measures = {{"rmse", 2.0}}}),
                  node("train", {.loss = 3.0, .accuracy = 0.8, .measures = {{"rmse", 4.0}}}),
                  node("plain", {.loss = 5.0, .note = "odd"}),
                  node("halves", {.loss = 6.0, .auc = 0.7, .measures = {{"f1", 8.0}}})}};
  const auto found = all.evaluate(std::vector<std::span<const float>>(2));
  CHECK(found.loss == 1.0);
  CHECK(found.accuracy == 0.9);
  CHECK(found.measures
        == std::vector<measure>{{"rmse", 2.0},
                                {"train.accuracy", 0.8},
                                {"train.rmse", 4.0},
                                {"plain.loss", 5.0},
                                {"halves.auc", 0.7},
                                {"halves.f1", 8.0}});
  CHECK(found.note == "plain: odd");
}

TEST_CASE("each evaluator gets the rows that it names") {
  std::vector<float> of_first, of_second, of_third;
  evaluators all{{node("first", {}, {7, 3, 7}, &of_first), node("second", {}, {}, &of_second),
                  node("third", {}, {9, 3, 5}, &of_third)}};
  const auto job = job_of_both();
  const auto rows = all.rows(job);
  REQUIRE(rows.size() == 1);
  CHECK(number_list(rows[0].span().begin(), rows[0].span().end()) == number_list{3, 5, 7, 9});
  const auto values = values_of(rows[0]);
  const std::vector<std::span<const float>> parameters{{}, values};
  all.evaluate(parameters);
  CHECK(of_first == std::vector<float>{3, 3.5, 7, 7.5});
  CHECK(of_second.empty());
  CHECK(of_third == std::vector<float>{3, 3.5, 5, 5.5, 9, 9.5});
}

TEST_CASE("an error names the evaluator unless it is the only one") {
  CHECK(failure_of({broken_node("test")}) == "no data");
  CHECK(failure_of({node("test", {}), broken_node("train")}) == "train: no data");
  CHECK(failure_of({node("test", {}), {"train", [] { return nullptr; }}})
        == "train: the graph's evaluator factory made no evaluator");
  CHECK(failure_of({node("test", {}), node("train", {.measures = {{"a.b", 1}}})})
        == "train: the measure 'a.b' has a wrong name: use the characters a-z, 0-9 and _");
}

TEST_CASE("names of measures are checked") {
  CHECK(check_measures({{"a", 1}, {"recall_at_10", 2}}));
  CHECK(text_of(check_measures({{"", 1}})).find("use the characters") != std::string::npos);
  CHECK(text_of(check_measures({{"two words", 1}})).find("use the characters")
        != std::string::npos);
  CHECK(text_of(check_measures({{std::string(33, 'a'), 1}}))
        == "the measure '" + std::string(33, 'a')
             + "' has a name of 33 characters: use at most 32");
  CHECK(text_of(check_measures({{"seconds", 1}}))
        == "the measure 'seconds' has the name of another figure of the report: rename it");
  CHECK(text_of(check_measures({{"a", 1}, {"a", 2}}))
        == "the measure 'a' is there twice: rename one");
}

} // namespace evaluators_test
