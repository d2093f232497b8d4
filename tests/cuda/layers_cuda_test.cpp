#include "kernels/layers.hpp"

#include "kernels/devices/blas.hpp"
#include "tests/cuda/under_test.hpp"
#include "tests/numbers.hpp"

#include <cmath>

namespace troupe::test::layers_cuda_test {

namespace {

constexpr double u = 0x1p-24;

} // namespace

TEST_CASE("devices: biases are added with one rounding, and relu keeps what is above zero") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  for (const bool relu : {false, true})
    for (const std::size_t columns : {1u, 10u, 257u}) {
      const std::size_t rows = 33;
      numbers random{columns};
      const auto values = random.units(rows * columns), biases = random.units(columns);
      const auto z = at.upload(values), bias = at.upload(biases);
      kernels::add_bias(at.stream(), z.span(), bias.span(), relu);
      const auto got = at.download(z);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const auto wanted = static_cast<float>(double{values[i]} + double{biases[i % columns]});
        REQUIRE(got[i] == (relu && wanted < 0.0f ? 0.0f : wanted));
      }
    }
}

TEST_CASE("devices: a delta is kept where its output is above zero") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  numbers random{5};
  const auto values = random.units(4099), outputs = random.units(4099);
  const auto delta = at.upload(values), output = at.upload(outputs);
  kernels::relu_gradient(at.stream(), delta.span(), output.span());
  const auto got = at.download(delta);
  for (std::size_t i = 0; i < got.size(); ++i)
    REQUIRE(got[i] == (outputs[i] > 0.0f ? values[i] : 0.0f));
}

TEST_CASE("devices: rows are added up within the bound") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  for (const std::size_t rows : {1u, 2u, 64u})
    for (const std::size_t columns : {1u, 10u, 1025u}) {
      numbers random{rows};
      const auto values = random.units(rows * columns);
      const auto in = at.upload(values), sum = at.upload(std::vector<float>(columns, 77.0f));
      kernels::sum_rows(at.stream(), sum.span(), in.span());
      const auto got = at.download(sum);
      for (std::size_t c = 0; c < columns; ++c) {
        double wanted = 0, size = 0;
        for (std::size_t r = 0; r < rows; ++r) {
          wanted += double{values[r * columns + c]};
          size += std::fabs(double{values[r * columns + c]});
        }
        REQUIRE(std::fabs(double{got[c]} - wanted) <= static_cast<double>(rows - 1) * u * size);
      }
    }
}

TEST_CASE("devices: softmax cross-entropy and its delta are within their bounds") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  for (const float largest : {1.0f, 30.0f})
    for (const std::size_t columns : {2u, 10u, 255u, 256u, 1000u}) {
      constexpr std::size_t rows = 7;
      numbers random{columns};
      auto values = random.units(rows * columns);
      for (float& x : values)
        x *= largest;
      std::vector<std::uint32_t> labels;
      for (std::size_t r = 0; r < rows; ++r)
        labels.push_back(static_cast<std::uint32_t>(random.next() % columns));
      const auto z = at.upload(values), loss = at.upload(std::vector<float>(rows, 77.0f));
      const auto label = at.upload(labels);
      kernels::softmax_delta(at.stream(), z.span(), label.span(), loss.span());
      const auto delta = at.download(z), losses = at.download(loss);
      for (std::size_t r = 0; r < rows; ++r) {
        const float* const row = values.data() + r * columns;
        double sum = 0;
        for (std::size_t c = 0; c < columns; ++c)
          sum += std::exp(double{row[c]});
        const double wanted_loss = std::log(sum) - double{row[labels[r]]};
        CHECK(std::fabs(double{losses[r]} - wanted_loss)
              <= (16 + 4 * largest) * u * std::max(1.0, std::fabs(wanted_loss)));
        for (std::size_t c = 0; c < columns; ++c) {
          const double p = std::exp(double{row[c]}) / sum;
          const double wanted = (p - (c == labels[r] ? 1.0 : 0.0)) / rows;
          const double bound = (8 + static_cast<double>(columns) / 256 + 2 * largest) * u * p / rows
                               + 2 * u * std::fabs(wanted);
          REQUIRE(std::fabs(double{delta[r * columns + c]} - wanted) <= bound);
        }
      }
    }
}

TEST_CASE("devices: products of matrices, transposed or not, are those of the formula") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  const auto blas = must(open_blas(*on, 0));
  constexpr std::size_t m = 7, n = 33, k = 19;
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true}) {
      numbers random{1};
      const auto left = random.units(m * k), right = random.units(k * n);
      const auto a = at.upload(left), b = at.upload(right);
      const auto c = at.upload(std::vector<float>(m * n, 77.0f));
      must(blas->multiply(at.stream(), {transpose_a, transpose_b, m, n, k}, a.data(), b.data(),
                          c.data()));
      const auto got = at.download(c);
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < n; ++j) {
          double wanted = 0, size = 0;
          for (std::size_t l = 0; l < k; ++l) {
            const double term = double{transpose_a ? left[l * m + i] : left[i * k + l]}
                                * double{transpose_b ? right[j * k + l] : right[l * n + j]};
            wanted += term;
            size += std::fabs(term);
          }
          REQUIRE(std::fabs(double{got[i * n + j]} - wanted) <= (k + 1) * u * size);
        }
    }
}

} // namespace troupe::test::layers_cuda_test
