#include "kernels/half.hpp"

#include "tests/kernels/cpu_targets.hpp"
#include "tests/numbers.hpp"

#include "doctest/doctest.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace troupe::kernels::half_test {

namespace {

/// A 16-bit format, with the meaning of its bits from the definition of IEEE 754.
struct format {
  int mantissa_bits;
  int bias;
  double largest;
  void (*to)(std::span<const float>, std::span<std::uint16_t>);
  void (*from)(std::span<const std::uint16_t>, std::span<float>);

  double value(std::uint16_t bits) const {
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    const int exponent = (bits & 0x7fff) >> mantissa_bits;
    const int top = 0x7fff >> mantissa_bits;
    const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == top)
      return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                           : std::numeric_limits<double>::quiet_NaN();
    const int whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
    return sign * std::ldexp(whole, std::max(exponent, 1) - bias - mantissa_bits);
  }
  std::uint16_t of(float x) const {
    std::uint16_t y = 0;
    to({&x, 1}, {&y, 1});
    return y;
  }
  /// Returns the finite number of the format that is nearest to x. It searches by bits, because
  /// numbers have the order of their bits.
  std::uint16_t nearest(float x) const {
    const double size = std::fabs(double{x});
    const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    std::uint16_t low = 0, high = of_largest();
    if (size >= largest)
      return static_cast<std::uint16_t>(sign | high);
    while (high - low > 1) {
      const auto middle = static_cast<std::uint16_t>((low + high) / 2);
      (value(middle) <= size ? low : high) = middle;
    }
    const double below = size - value(low), above = value(high) - size;
    const bool up = above < below || (above == below && low % 2 == 1);
    return static_cast<std::uint16_t>(sign | (up ? high : low));
  }
  std::uint16_t of_largest() const {
    return static_cast<std::uint16_t>((0x7fff >> mantissa_bits << mantissa_bits) - 1);
  }
};

const format formats[] = {{10, 15, 65504.0, to_fp16, from_fp16},
                          {7, 127, 0x1.fep127, to_bf16, from_bf16}};

} // namespace

TEST_CASE("each number of 16 bits means what its format says") {
  on_every_target([] {
    for (const format& each : formats)
      for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        const auto x = static_cast<std::uint16_t>(bits);
        float y = 0;
        each.from({&x, 1}, {&y, 1});
        const double wanted = each.value(x);
        const bool right = std::isnan(wanted)
                             ? std::isnan(y) && std::signbit(y) == (bits >= 0x8000)
                             : double{y} == wanted && std::signbit(y) == (bits >= 0x8000);
        if (!right)
          FAIL_CHECK(bits, " became ", y, ", not ", wanted);
      }
  });
}

TEST_CASE("a number of 16 bits comes back as it was") {
  on_every_target([] {
    for (const format& each : formats)
      for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        const auto x = static_cast<std::uint16_t>(bits);
        float y = 0;
        each.from({&x, 1}, {&y, 1});
        if (!std::isnan(y) && each.of(y) != x)
          FAIL_CHECK(bits, " came back as ", each.of(y));
      }
  });
}

TEST_CASE("floats round to the nearest number of 16 bits") {
  on_every_target([] {
    for (const format& each : formats)
      for (const std::size_t count : test::awkward_sizes)
        for (const int exponent_min : {-30, -149}) {
          const auto x =
            test::numbers{1}.extremes(count, exponent_min, exponent_min == -30 ? 17 : 127);
          std::vector<std::uint16_t> y(count);
          each.to(x, y);
          for (std::size_t i = 0; i < count; ++i)
            if (y[i] != each.nearest(x[i]))
              FAIL_CHECK(x[i], " became ", y[i], ", not ", each.nearest(x[i]));
        }
  });
}

TEST_CASE("floats halfway between two numbers of 16 bits become the even one") {
  on_every_target([] {
    for (const format& each : formats)
      for (std::uint16_t bits = 0; bits < each.of_largest(); ++bits) {
        const auto next = static_cast<std::uint16_t>(bits + 1);
        const auto middle = static_cast<float>((each.value(bits) + each.value(next)) / 2);
        if (each.of(middle) != (bits % 2 == 0 ? bits : next))
          FAIL_CHECK(bits, " and a half became ", each.of(middle));
        const float over = std::nextafter(middle, std::numeric_limits<float>::infinity());
        if (each.of(over) != next)
          FAIL_CHECK(bits, " and more than a half became ", each.of(over));
      }
  });
}

TEST_CASE("what was finite stays finite, what was not stays what it was") {
  on_every_target([] {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (const format& each : formats) {
      for (const float large :
           {65504.0f, 65519.0f, 65520.0f, 1e5f, 0x1.ffp127f, std::numeric_limits<float>::max()}) {
        CHECK(each.value(each.of(large)) <= each.largest);
        CHECK(each.of(large) == each.nearest(large));
        CHECK(each.of(-large) == each.nearest(-large));
      }
      CHECK(each.value(each.of(infinity)) == infinity);
      CHECK(each.value(each.of(-infinity)) == -infinity);
      for (const std::uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u}) {
        const auto found = each.of(std::bit_cast<float>(bits));
        CHECK(std::isnan(each.value(found)));
        CHECK((found & 0x8000) == (bits >> 31 << 15));
      }
      CHECK(each.of(-0.0f) == 0x8000);
    }
  });
}

TEST_CASE("errors of a round trip in 16 bits are within their bounds") {
  on_every_target([] {
    const double relative[] = {0x1p-11, 0x1p-8}, least[] = {0x1p-25, 0x1p-134};
    for (int i = 0; i < 2; ++i) {
      const auto x = test::numbers{2}.extremes(4099, -149, i == 0 ? 15 : 127);
      std::vector<std::uint16_t> packed(x.size());
      std::vector<float> y(x.size());
      formats[i].to(x, packed);
      formats[i].from(packed, y);
      for (std::size_t k = 0; k < x.size(); ++k)
        CHECK(std::fabs(double{x[k]} - double{y[k]})
              <= std::max(relative[i] * std::fabs(double{x[k]}), least[i]));
    }
  });
}

} // namespace troupe::kernels::half_test
