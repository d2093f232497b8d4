#include "kernels/onebit.hpp"

#include "tests/kernels/cpu_targets.hpp"
#include "tests/numbers.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace troupe::kernels::onebit_test {

namespace {

struct packed {
  std::vector<std::uint8_t> bits;
  std::vector<float> means, residual;

  bool bit(std::size_t i) const { return (bits[i / 8] >> (i % 8) & 1) != 0; }
};

packed pack(const std::vector<float>& x, std::vector<float> residual) {
  packed made{std::vector<std::uint8_t>((x.size() + 7) / 8, 0xff),
              std::vector<float>(2 * ((x.size() + 1023) / 1024)), std::move(residual)};
  to_onebit(x, made.residual, made.bits, made.means);
  return made;
}

std::vector<float> back(const packed& from) {
  std::vector<float> y(from.residual.size());
  from_onebit(from.bits, from.means, y);
  return y;
}

constexpr std::pair<int, int> ranges[] = {{-20, 3}, {-149, 126}, {-149, -120}};

} // namespace

TEST_CASE("a bit is the sign, and comes back as its block's mean") {
  on_every_target([] {
    for (const std::size_t count : test::awkward_sizes)
      for (const auto& [low, high] : ranges) {
        const auto x = test::numbers{1}.extremes(count, low, high),
                   old = test::numbers{2}.extremes(count, low, high);
        const auto made = pack(x, old);
        const auto y = back(made);
        for (std::size_t i = 0; i < count; ++i) {
          CHECK(made.bit(i) == !std::signbit(x[i] + old[i]));
          CHECK(y[i] == made.means[2 * (i / 1024) + (made.bit(i) ? 1 : 0)]);
        }
        for (std::size_t i = count; i < 8 * made.bits.size(); ++i)
          CHECK(!made.bit(i));
      }
  });
}

TEST_CASE("means of a block are those of float64") {
  on_every_target([] {
    for (const std::size_t count : test::awkward_sizes)
      for (const auto& [low, high] : ranges) {
        const auto x = test::numbers{3}.extremes(count, low, high),
                   old = test::numbers{4}.extremes(count, low, high);
        const auto made = pack(x, old);
        for (std::size_t block = 0; block < made.means.size() / 2; ++block) {
          long double sums[2] = {}, sizes[2] = {};
          for (std::size_t i = 1024 * block; i < std::min(count, 1024 * block + 1024); ++i) {
            sums[made.bit(i)] += static_cast<long double>(x[i] + old[i]);
            ++sizes[made.bit(i)];
          }
          for (int bit = 0; bit < 2; ++bit) {
            const long double mean = sizes[bit] == 0 ? 0 : sums[bit] / sizes[bit];
            CHECK(std::fabs(static_cast<long double>(made.means[2 * block + bit]) - mean)
                  <= (0x1p-24L + 1024 * 0x1p-53L) * std::fabs(mean) + 0x1p-150L);
          }
        }
      }
  });
}

TEST_CASE("what the means leave out is kept") {
  on_every_target([] {
    for (const std::size_t count : test::awkward_sizes)
      for (const auto& [low, high] : ranges) {
        const auto x = test::numbers{5}.extremes(count, low, high),
                   old = test::numbers{6}.extremes(count, low, high);
        const auto made = pack(x, old);
        const auto y = back(made);
        for (std::size_t i = 0; i < count; ++i)
          CHECK(made.residual[i] == (x[i] + old[i]) - y[i]);
      }
  });
}

TEST_CASE("what was sent over many steps is what there was") {
  on_every_target([] {
    // For a constant gradient, the sum of the sent values approaches the sum of the gradients.
    const auto x = test::numbers{7}.extremes(3000, -3, 1);
    std::vector<float> residual(x.size());
    std::vector<double> sent(x.size()), rounding(x.size());
    constexpr int rounds = 200;
    for (int round = 0; round < rounds; ++round) {
      const auto made = pack(x, residual);
      const auto y = back(made);
      for (std::size_t i = 0; i < x.size(); ++i) {
        sent[i] += y[i];
        rounding[i] += 0x1p-24 * (std::fabs(x[i] + residual[i]) + std::fabs(made.residual[i]));
      }
      residual = made.residual;
    }
    for (std::size_t i = 0; i < x.size(); ++i)
      CHECK(std::fabs(sent[i] + double{residual[i]} - rounds * double{x[i]}) <= rounding[i]);
  });
}

TEST_CASE("zeros stay zeros") {
  on_every_target([] {
    const auto made = pack(std::vector<float>(2000), std::vector<float>(2000));
    CHECK(std::ranges::all_of(back(made), [](float y) { return y == 0.0f; }));
    CHECK(std::ranges::all_of(made.residual, [](float r) { return r == 0.0f; }));
  });
}

} // namespace troupe::kernels::onebit_test
