#include "kernels/reduce.inl.hpp"
#include "kernels/vector_ops.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace troupe::kernels {

namespace {

struct sum_body {
  float* total;
  const float* inputs[sum_group];
  unsigned inputs_count;
  TROUPE_HD void operator()(std::size_t i) const {
    float value = inputs_count == 0 ? 0.0f : inputs[0][i];
    for (unsigned k = 1; k < inputs_count; ++k)
      value += inputs[k][i];
    total[i] = value;
  }
};

struct add_body {
  float* sum;
  const float* x;
  TROUPE_HD void operator()(std::size_t i) const { sum[i] += x[i]; }
};

struct axpy_body {
  float* y;
  float a;
  const float* x;
  TROUPE_HD void operator()(std::size_t i) const { y[i] += a * x[i]; }
};

struct scale_body {
  float* x;
  float a;
  TROUPE_HD void operator()(std::size_t i) const { x[i] *= a; }
};

/// A NaN is neither below nor above.
struct clip_body {
  float* x;
  float limit;
  TROUPE_HD void operator()(std::size_t i) const {
    const float raised = x[i] < -limit ? -limit : x[i];
    x[i] = raised > limit ? limit : raised;
  }
};

/// Runs for one element.
struct factor_body {
  const double* squared_norm;
  float limit;
  float* factor;
  TROUPE_HD void operator()(std::size_t) const {
    const double length = std::sqrt(*squared_norm);
    *factor = length > limit ? static_cast<float>(limit / length) : 1.0f;
  }
};

struct scale_by_body {
  float* x;
  const float* factor;
  TROUPE_HD void operator()(std::size_t i) const {
    if (*factor != 1.0f)
      x[i] *= *factor;
  }
};

/// Runs for one element.
struct root_body {
  double* value;
  TROUPE_HD void operator()(std::size_t) const { *value = std::sqrt(*value); }
};

struct products {
  using value_type = double;
  const float *x, *y;
  TROUPE_HD static double none() { return 0.0; }
  TROUPE_HD double operator()(std::size_t i) const { return double{x[i]} * double{y[i]}; }
  TROUPE_HD static double combine(double a, double b) { return a + b; }
};

struct squares {
  using value_type = double;
  const float* x;
  TROUPE_HD static double none() { return 0.0; }
  TROUPE_HD double operator()(std::size_t i) const { return double{x[i]} * double{x[i]}; }
  TROUPE_HD static double combine(double a, double b) { return a + b; }
};

struct non_finite_index {
  using value_type = std::uint64_t;
  const float* x;
  std::size_t count;
  TROUPE_HD std::uint64_t none() const { return count; }
  TROUPE_HD std::uint64_t operator()(std::size_t i) const {
    constexpr std::uint32_t infinity_bits = 0x7f800000;
    return (std::bit_cast<std::uint32_t>(x[i]) & infinity_bits) == infinity_bits ? i : count;
  }
  TROUPE_HD static std::uint64_t combine(std::uint64_t a, std::uint64_t b) { return a < b ? a : b; }
};

} // namespace

void sum(stream at, std::span<float> total, std::span<const std::span<const float>> inputs) {
  assert(std::ranges::all_of(inputs, [&](const auto& x) { return x.size() == total.size(); }));
  sum_body body{total.data(), {}, 0};
  const auto launch = [&] { launch_elements(at, total.size(), body); };
  for (const auto& input : inputs) {
    if (body.inputs_count == sum_group) {
      launch();
      body.inputs[0] = total.data();
      body.inputs_count = 1;
    }
    body.inputs[body.inputs_count++] = input.data();
  }
  launch();
}

void add(stream at, std::span<float> sum, std::span<const float> x) {
  assert(sum.size() == x.size());
  launch_elements(at, sum.size(), add_body{sum.data(), x.data()});
}

void axpy(stream at, std::span<float> y, float a, std::span<const float> x) {
  assert(y.size() == x.size());
  launch_elements(at, y.size(), axpy_body{y.data(), a, x.data()});
}

void scale(stream at, std::span<float> x, float a) {
  launch_elements(at, x.size(), scale_body{x.data(), a});
}

void clip(stream at, std::span<float> x, float limit) {
  assert(limit >= 0.0f);
  launch_elements(at, x.size(), clip_body{x.data(), limit});
}

void clip_by_norm(stream at, std::span<float> x, float limit,
                  std::span<double, partials_max> partials, float* factor) {
  assert(limit > 0.0f);
  squared_norm(at, x, partials, partials.data());
  launch_elements(at, 1, factor_body{partials.data(), limit, factor});
  launch_elements(at, x.size(), scale_by_body{x.data(), factor});
}

void dot(stream at, std::span<const float> x, std::span<const float> y,
         std::span<double, partials_max> partials, double* result) {
  assert(x.size() == y.size());
  detail::launch_reduce(at, x.size(), products{x.data(), y.data()}, partials.data(), result);
}

void norm(stream at, std::span<const float> x, std::span<double, partials_max> partials,
          double* result) {
  squared_norm(at, x, partials, result);
  launch_elements(at, 1, root_body{result});
}

void squared_norm(stream at, std::span<const float> x, std::span<double, partials_max> partials,
                  double* result) {
  detail::launch_reduce(at, x.size(), squares{x.data()}, partials.data(), result);
}

void first_non_finite(stream at, std::span<const float> x,
                      std::span<std::uint64_t, partials_max> partials, std::uint64_t* result) {
  detail::launch_reduce(at, x.size(), non_finite_index{x.data(), x.size()}, partials.data(),
                        result);
}

} // namespace troupe::kernels
