#include "actors/training/local_steps.hpp"
#include "tests/actors/tiny_training.hpp"

#include "doctest/doctest.h"

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

namespace local_steps_test {

using namespace troupe;
using namespace troupe::test;

namespace {

using floats = std::vector<float>;

/// Computes the mean of (w[i] - sample)^2 / 2 for each element of two tables.
double squares(const batch& work, const_tensors parameters, mutable_tensors gradients) {
  double loss = 0;
  const auto count = static_cast<float>(work.samples.size());
  for (std::size_t t = 0; t < gradients.size(); ++t)
    for (std::size_t i = 0; i < gradients[t].size(); ++i) {
      gradients[t][i] = 0;
      for (const auto sample : work.samples) {
        const float off = parameters[t][i] - static_cast<float>(sample);
        gradients[t][i] += off / count;
        loss += off * off / 2 / count;
      }
    }
  return loss;
}

/// Two tables of two and one elements, and a batch of `samples` samples.
struct outer_step {
  explicit outer_step(std::uint32_t samples = 7) : samples_(samples) {
    std::iota(samples_.begin(), samples_.end(), 1u);
  }
  double take(trainer& model) {
    batch work;
    work.samples = samples_;
    work.seed = 9;
    const std::vector<std::span<const float>> read{w, b};
    const std::vector<std::span<float>> write{gw, gb};
    return model.gradient(work, read, write);
  }
  floats w{1, -2}, b{5}, gw{0, 0}, gb{0};
  std::vector<std::uint32_t> samples_;
};

std::unique_ptr<trainer> stepping(local_step_options options, std::uint64_t stretch,
                                  gradient_function what = squares) {
  return take_local_steps(std::make_unique<scripted_trainer>(std::move(what)), options, stretch);
}

} // namespace

TEST_CASE("local steps of sgd are those of a loop") {
  outer_step f; // Inner steps on samples {1, 2, 3}, {4, 5, 6} and {7}.
  const auto model = stepping({.steps = 3, .optimizer = {.learning_rate = 0.5f}}, 3);
  const double loss = f.take(*model);
  floats values{1, -2, 5};
  double losses = 0;
  for (const auto& part : std::vector<floats>{{1, 2, 3}, {4, 5, 6}, {7}})
    for (float& x : values) {
      float gradient = 0;
      for (const float sample : part) {
        gradient += (x - sample) / static_cast<float>(part.size());
        losses += (x - sample) * (x - sample) / 2;
      }
      x -= 0.5f * gradient;
    }
  CHECK(f.gw[0] == doctest::Approx(1 - values[0]));
  CHECK(f.gw[1] == doctest::Approx(-2 - values[1]));
  CHECK(f.gb[0] == doctest::Approx(5 - values[2]));
  CHECK(loss == doctest::Approx(losses / 7));
}

TEST_CASE("the state of the inner optimiser begins anew with each batch, unless it is kept") {
  for (const bool keep : {false, true}) {
    outer_step f;
    const auto model =
      stepping({.steps = 2,
                .optimizer = {.kind = optimizer_kind::momentum, .learning_rate = 0.1f},
                .keep = keep},
               4, constant_gradient(1.0f));
    f.take(*model); // The momentum is 1, then 1.9.
    CHECK(f.gw[0] == doctest::Approx(0.1 * (1 + 1.9)));
    f.take(*model);
    CHECK(f.gw[0] == doctest::Approx(keep ? 0.1 * (2.71 + 3.439) : 0.1 * (1 + 1.9)));
  }
}

TEST_CASE("adam counts the local steps from one") {
  outer_step f;
  const auto model =
    stepping({.steps = 2, .optimizer = {.kind = optimizer_kind::adam, .learning_rate = 0.25f}}, 4,
             constant_gradient(3.0f));
  for (int i = 0; i < 2; ++i) {
    f.take(*model);
    CHECK(f.gw[0] == doctest::Approx(0.5)); // Each step of a constant gradient is the rate.
  }
}

TEST_CASE("local steps clip each inner gradient by its norm over all tables") {
  outer_step f;
  const auto model = stepping({.steps = 2, .optimizer = {.learning_rate = 1.0f, .clip_norm = 0.5f}},
                              4, constant_gradient(2.0f));
  f.take(*model);
  CHECK(f.gb[0] == doctest::Approx(2 * 0.5 / std::sqrt(3.0)));
}

TEST_CASE("an inner gradient that is not finite makes the gradient NaN, and the next begins anew") {
  outer_step f;
  float next = 1.0f;
  const auto model =
    stepping({.steps = 2,
              .optimizer = {.kind = optimizer_kind::momentum, .learning_rate = 0.1f},
              .keep = true},
             4, [&](const batch& work, const_tensors x, mutable_tensors gradients) {
               return constant_gradient(next)(work, x, gradients);
             });
  f.take(*model);
  next = std::numeric_limits<float>::infinity();
  f.take(*model);
  CHECK(std::isnan(f.gw[0]));
  CHECK(std::isnan(f.gb[0]));
  next = 1.0f;
  f.take(*model);
  CHECK(f.gw[0] == doctest::Approx(0.1 * (1 + 1.9)));
}

TEST_CASE("inner steps have seeds of their own, and report no table early") {
  outer_step f;
  std::set<std::uint64_t> seeds;
  const auto model =
    stepping({.steps = 7}, 1, [&](const batch& work, const_tensors, mutable_tensors gradients) {
      CHECK(work.samples.size() == 1);
      CHECK_FALSE(work.on_ready);
      seeds.insert(work.seed);
      return constant_gradient(0.0f)(work, {}, gradients);
    });
  f.take(*model);
  CHECK(seeds.size() == 7);
  f.take(*model);
  CHECK(seeds.size() == 7); // They are a function of the batch's seed.
}

} // namespace local_steps_test
