#include "kernels/flush_denormals.hpp"

#include "doctest/doctest.h"

#include <bit>
#include <cstdint>
#include <latch>
#include <thread>

namespace troupe::kernels::flush_denormals_test {

namespace {

// Tests compare bits: while a guard lives, a comparison of floats takes denormals for zeros too.
std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

std::uint32_t product(float a, float b) {
  const volatile float x = a, y = b, result = x * y;
  return bits_of(result);
}

} // namespace

TEST_CASE("flush_denormals takes denormal operands and results for zeros of their sign") {
  const flush_denormals guard;
  CHECK(product(0x1p-140f, 0x1p20f) == bits_of(0.0f));
  CHECK(product(-0x1p-140f, 0x1p20f) == bits_of(-0.0f));
  CHECK(product(0x1p-100f, 0x1p-40f) == bits_of(0.0f));
  CHECK(product(-0x1p-100f, 0x1p-40f) == bits_of(-0.0f));
  CHECK(product(0x1p-100f, 0x1p-26f) == bits_of(0x1p-126f));
}

TEST_CASE("flush_denormals restores what was there, nested or not") {
  CHECK(product(0x1p-140f, 2.0f) == bits_of(0x1p-139f));
  {
    const flush_denormals outer;
    {
      const flush_denormals inner;
      CHECK(product(0x1p-140f, 2.0f) == 0);
    }
    CHECK(product(0x1p-140f, 2.0f) == 0);
  }
  CHECK(product(0x1p-140f, 2.0f) == bits_of(0x1p-139f));
}

TEST_CASE("flush_denormals is of its thread alone") {
  std::latch guarded{1};
  std::uint32_t elsewhere = 0;
  std::thread other([&] {
    guarded.wait();
    elsewhere = product(0x1p-140f, 2.0f);
  });
  {
    const flush_denormals guard;
    guarded.count_down();
    other.join();
  }
  CHECK(elsewhere == bits_of(0x1p-139f));
}

} // namespace troupe::kernels::flush_denormals_test
