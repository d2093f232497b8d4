#include "kernels/vector_ops.hpp"

#include "doctest/doctest.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace troupe::kernels {

namespace {

constexpr std::array<std::size_t, 7> sizes{0, 1, 3, 255, 256, 257, 4099};
constexpr float infinity = std::numeric_limits<float>::infinity();

std::vector<float> numbers(std::size_t count, int exponent_min, int exponent_max,
                           std::uint32_t seed) {
  std::mt19937 random{seed};
  const auto range = static_cast<std::uint32_t>(exponent_max - exponent_min);
  std::vector<float> result(count);
  for (float& x : result) {
    const float unit = static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f;
    x = std::ldexp(unit, exponent_min + static_cast<int>(random() % range));
  }
  return result;
}

/// The header's definition of the order of a reduction, in words of its own.
double squared_norm_by_lanes(const std::vector<float>& x) {
  std::array<double, 16> lane{};
  for (std::size_t i = 0; i < x.size(); ++i)
    lane[i % 16] += double{x[i]} * double{x[i]};
  std::array<double, 8> a;
  for (std::size_t i = 0; i < 8; ++i)
    a[i] = lane[i] + lane[i + 8];
  return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

} // namespace

TEST_CASE("add rounds each sum once") {
  for (const std::size_t count : sizes)
    for (const int exponent_min : {-1, -149}) {
      const auto x = numbers(count, exponent_min, 127, 1), y = numbers(count, exponent_min, 127, 2);
      auto sum = x;
      add(sum, y);
      for (std::size_t i = 0; i < count; ++i)
        CHECK(std::bit_cast<std::uint32_t>(sum[i])
              == std::bit_cast<std::uint32_t>(static_cast<float>(double{x[i]} + double{y[i]})));
    }
}

TEST_CASE("squared_norm is within n * 2^-53 of the exact sum") {
  for (const std::size_t count : sizes)
    for (const int exponent_min : {-1, -149}) {
      const auto x = numbers(count, exponent_min, 127, 3);
      long double exact = 0; // 64 bits of mantissa: 2^11 times finer than what is tested.
      for (const float value : x)
        exact += static_cast<long double>(value) * value;
      const auto error = std::fabs(static_cast<long double>(squared_norm(x)) - exact);
      CHECK(error <= static_cast<long double>(count) * 0x1p-53L * exact);
    }
}

TEST_CASE("squared_norm adds in the order of the 16 lanes") {
  for (const std::size_t count : sizes)
    for (const int exponent_min : {-1, -149})
      for (const std::size_t offset : {0, 1, 5}) {
        const auto all = numbers(count + offset, exponent_min, 127, 4);
        const std::vector<float> x(all.begin() + static_cast<std::ptrdiff_t>(offset), all.end());
        CHECK(squared_norm(std::span{all}.subspan(offset)) == squared_norm_by_lanes(x));
      }
}

TEST_CASE("squared_norm neither overflows nor underflows") {
  const float largest = std::numeric_limits<float>::max();
  const float smallest = std::numeric_limits<float>::denorm_min();
  CHECK(squared_norm(std::vector<float>(1000, largest)) > 1e79);
  CHECK(std::isfinite(squared_norm(std::vector<float>(1000, largest))));
  CHECK(squared_norm(std::vector<float>(1, smallest)) == 0x1p-298);
}

TEST_CASE("first_non_finite finds each position") {
  const float quiet = std::numeric_limits<float>::quiet_NaN();
  const float payload = std::bit_cast<float>(0xff800001u);
  for (const std::size_t count : {1u, 3u, 16u, 67u})
    for (std::size_t position = 0; position < count; ++position)
      for (const float bad : {quiet, payload, infinity, -infinity}) {
        auto x = numbers(count, -149, 127, 5);
        x[position] = bad;
        CHECK(first_non_finite(x) == position);
        x.back() = bad; // A second one behind it changes nothing.
        CHECK(first_non_finite(x) == position);
      }
}

TEST_CASE("first_non_finite finds positions around the ends of its stretches") {
  for (const std::size_t position : {0u, 1023u, 1024u, 1025u, 2047u, 2048u, 4098u}) {
    auto x = numbers(4099, -149, 127, 6);
    x[position] = infinity;
    CHECK(first_non_finite(x) == position);
  }
}

TEST_CASE("first_non_finite takes finite values for finite") {
  const float largest = std::numeric_limits<float>::max();
  for (const std::size_t count : sizes) {
    auto x = numbers(count, -149, 127, 7);
    if (count > 1)
      x[0] = largest, x[1] = -largest;
    CHECK(first_non_finite(x) == count);
  }
}

} // namespace troupe::kernels
