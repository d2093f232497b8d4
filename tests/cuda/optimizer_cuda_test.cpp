#include "kernels/optimizer.hpp"
#include "tests/cuda/under_test.hpp"
#include "tests/numbers.hpp"

#include <cmath>
#include <cstring>
#include <limits>

namespace troupe::test::optimizer_cuda_test {

namespace {

using kernels::step_options;

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size()
         && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

/// Checks a step on the device against the CPU's. tests/kernels/optimizer_test.cpp compares the
/// CPU's with float64.
void check_like_cpu(device_platform& on, const step_options& options, std::size_t count,
                    bool extreme) {
  numbers random{count};
  const std::size_t states = count * kernels::state_per_weight(options.kind);
  const auto values = [&](std::size_t n) { return extreme ? random.extremes(n) : random.units(n); };
  const auto weights = values(count), gradient = values(count);
  auto state = values(states);
  for (float& x : state) // Some states are sums of squares.
    x = std::fabs(x);
  std::vector<float> wanted(count), wanted_state(states);
  const bool finite =
    kernels::optimizer_step(wanted, wanted_state, weights, state, gradient, options);
  bench_device at{on};
  const auto w = at.upload(weights), s = at.upload(state), g = at.upload(gradient);
  const auto flag = at.upload(std::vector<std::uint32_t>{0});
  // The step is in place: outputs are the spans of the inputs.
  kernels::optimizer_step(at.stream(), w.span(), s.span(), w.span(), s.span(), g.span(), options,
                          flag.data());
  CHECK(same_bits(at.download(w), wanted));
  CHECK(same_bits(at.download(s), wanted_state));
  CHECK(at.download(flag)[0] == (finite ? 0 : 1));
}

} // namespace

TEST_CASE("devices: every optimiser's step has the bits of the CPU") {
  const auto on = platform_under_test();
  if (!on)
    return;
  for (const optimizer_kind kind :
       {optimizer_kind::sgd, optimizer_kind::momentum, optimizer_kind::nesterov,
        optimizer_kind::adagrad, optimizer_kind::adam, optimizer_kind::adamw, optimizer_kind::ftrl})
    for (const std::size_t count : device_sizes)
      for (const bool extreme : {false, true}) {
        CAPTURE(static_cast<int>(kind));
        CAPTURE(count);
        CAPTURE(extreme);
        check_like_cpu(*on, {.kind = kind}, count, extreme);
        check_like_cpu(*on,
                       {.kind = kind,
                        .rate = 0.05f,
                        .weight_decay = 0.01f,
                        .clip_value = 0.25f,
                        .gradient_scale = 0.3f,
                        .step = 1000},
                       count, extreme);
      }
}

TEST_CASE("devices: a step says that its gradient is not finite") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> gradient(1000, 1.0f);
    gradient[777] = bad;
    const auto w = at.upload(std::vector<float>(1000, 1.0f));
    const auto g = at.upload(gradient);
    const auto flag = at.upload(std::vector<std::uint32_t>{0});
    kernels::optimizer_step(at.stream(), w.span(), {}, w.span(), {}, g.span(), {}, flag.data());
    CHECK(at.download(flag)[0] == 1);
  }
}

} // namespace troupe::test::optimizer_cuda_test
