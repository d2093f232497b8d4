#include "actors/training/gradient_computer.hpp"
#include "tests/actors/tiny_training.hpp"

#include "doctest/doctest.h"

#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace gradient_computer_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const failure without_text{errc::job_failed, "std::runtime_error without a text"};

[[noreturn]] void throw_nothing_said() { throw std::runtime_error{""}; }

/// Throws where it is told, with an empty text.
class silent_trainer final : public trainer {
public:
  enum class where { keys, gradient, device };
  explicit silent_trainer(where place) : place_(place) {}

  void keys(const batch&, key_lists) override {
    if (place_ == where::keys)
      throw_nothing_said();
  }
  double gradient(const batch&, const_tensors, mutable_tensors) override {
    if (place_ == where::gradient)
      throw_nothing_said();
    return 1.0;
  }
  std::optional<device_gradient> gradient_on_device(const batch&, const_tensors,
                                                    const value_identity&) override {
    if (place_ == where::device)
      throw_nothing_said();
    return std::nullopt;
  }

private:
  where place_;
};

job_spec tiny_job() {
  job_spec job;
  job.samples = 12;
  job.batch_samples = 4;
  job.tables = {table_of("w", 3)};
  return job;
}

gradient_outcome computed(gradient_computer& computer) {
  const auto values = buffer_pool{}.floats(3);
  return computer.compute({7, {2}, {values}, {}, 5, {}});
}

trainer_factory silent_at(silent_trainer::where place) {
  return [place] { return std::make_unique<silent_trainer>(place); };
}

} // namespace

TEST_CASE("an exception with an empty text is a failure, and no gradient is made") {
  for (const auto place : {silent_trainer::where::gradient, silent_trainer::where::device}) {
    gradient_computer computer{tiny_job(), silent_at(place), true};
    const auto made = computed(computer);
    CHECK(made.number == 7);
    CHECK(made.failed == without_text);
    CHECK(made.pieces.empty());
  }
}

TEST_CASE("an exception of keys() with an empty text is a failure") {
  auto job = tiny_job();
  job.tables[0].kind = table_kind::sparse;
  job.tables[0].width = 1;
  gradient_computer computer{job, silent_at(silent_trainer::where::keys)};
  const auto named = computer.keys({8, {2}});
  CHECK(named.number == 8);
  CHECK(named.failed == without_text);
}

TEST_CASE("without a trainer every outcome has the reason, also if that has an empty text") {
  const std::pair<trainer_factory, failure> cases[] = {
    {[]() -> std::unique_ptr<trainer> { throw_nothing_said(); }, without_text},
    {[]() -> std::unique_ptr<trainer> { throw 42; },
     {errc::job_failed, "the program threw a value of type int, which is no std::exception"}},
    {[] { return std::unique_ptr<trainer>{}; },
     {errc::job_failed, "the graph's trainer factory made no trainer"}},
  };
  for (const auto& [make, why] : cases) {
    gradient_computer computer{tiny_job(), make};
    for (int i = 0; i < 2; ++i) {
      CHECK(computer.keys({8, {2}}).failed == why);
      CHECK(computed(computer).failed == why);
    }
  }
}

} // namespace gradient_computer_test
