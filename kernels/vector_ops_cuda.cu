#include "kernels/reduce.inl.hpp"
#include "kernels/vector_ops.hpp"

#include <bit>
#include <cassert>

namespace troupe::kernels {

namespace {

struct add_body {
  float* sum;
  const float* x;
  TROUPE_HD void operator()(std::size_t i) const { sum[i] += x[i]; }
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

void add(stream at, std::span<float> sum, std::span<const float> x) {
  assert(sum.size() == x.size());
  launch_elements(at, sum.size(), add_body{sum.data(), x.data()});
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
