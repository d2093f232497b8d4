#include "actors/tables/packing.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace troupe::packing_test {

namespace {

const compression all[] = {{encoding::fp16, 0},      {encoding::bf16, 0},    {encoding::int8, 0},
                           {encoding::onebit, 0},    {encoding::topk, 0.01}, {encoding::topk, 1},
                           {encoding::randomk, 0.1}, {encoding::randomk, 1}};
constexpr std::size_t counts[] = {0, 1, 3, 255, 256, 257, 4099, 70'001, 262'144};

std::vector<float> numbers(std::size_t count) {
  std::mt19937 random{static_cast<std::uint32_t>(count)};
  std::normal_distribution<float> draw;
  std::vector<float> made(count);
  for (float& x : made)
    x = draw(random);
  return made;
}

/// A buffer aligned as a link's payload is.
struct packed_bytes_of {
  packed_bytes_of(const compression& how, const std::vector<float>& x, std::vector<float>& residual,
                  std::uint64_t seed = 7)
      : words(packed_bytes(how, x.size()) / 8) {
    residual.resize(how.keeps_residual() ? x.size() : 0);
    pack(how, x, residual, &seed, std::as_writable_bytes(std::span{words}));
  }
  std::span<const std::byte> span() const { return std::as_bytes(std::span{words}); }
  std::vector<std::uint64_t> words;
};

} // namespace

TEST_CASE("what was packed is unpacked, as exactly as its encoding says") {
  for (const auto& how : all)
    for (const std::size_t count : counts) {
      CAPTURE(to_string(how));
      CAPTURE(count);
      const auto x = numbers(count);
      std::vector<float> residual, y(count, 99.0f);
      const packed_bytes_of packed{how, x, residual};
      REQUIRE(unpack(how.how, packed.span(), y));
      double rest = 0, all_of_it = 0, apart = 0;
      for (std::size_t i = 0; i < count; ++i) {
        all_of_it += double{x[i]} * x[i];
        rest += double{x[i] - y[i]} * (x[i] - y[i]);
        if (how.keeps_residual())
          apart = std::max(apart, std::fabs(double{x[i]} - double{y[i]} - double{residual[i]}));
      }
      CHECK(apart <= 1e-6);
      const double left = count == 0 ? 0 : rest / all_of_it;
      switch (how.how) {
      case encoding::fp16: CHECK(left <= 1e-6); break;
      case encoding::bf16: CHECK(left <= 1e-4); break;
      case encoding::int8: CHECK(left <= 1e-3); break;
      default: CHECK(left <= 1);
      }
      if (how.fraction == 1)
        CHECK(left == 0);
    }
}

TEST_CASE("packed values have the size that encoding.hpp says") {
  CHECK(packed_bytes({encoding::fp16, 0}, 5) == 16);
  CHECK(packed_bytes({encoding::bf16, 0}, 262'144) == 524'288);
  CHECK(packed_bytes({encoding::int8, 0}, 257) == 272);
  CHECK(packed_bytes({encoding::onebit, 0}, 1025) == 16 + 136);
  CHECK(packed_bytes({encoding::topk, 0.01}, 70'000) == 4 + 700 * 6 + 8 + 4);
  CHECK(packed_bytes({encoding::topk, 1e-9}, 70'000) == 24);
  CHECK(packed_bytes({encoding::randomk, 0.01}, 1000) == 56);
}

TEST_CASE("packing is a function of its arguments") {
  for (const auto& how : all) {
    const auto x = numbers(4099);
    std::vector<float> first, second, third;
    const auto words = packed_bytes_of(how, x, first).words;
    CHECK(packed_bytes_of(how, x, second).words == words);
    CHECK(first == second);
    const bool draws = how.how == encoding::int8 || how.how == encoding::randomk;
    CHECK((packed_bytes_of(how, x, third, 8).words != words) == draws);
  }
}

TEST_CASE("packed values of another length are refused") {
  for (const auto& how : all)
    for (const std::size_t count : {std::size_t{1}, std::size_t{257}, std::size_t{4099}}) {
      std::vector<float> residual, y(count);
      const packed_bytes_of packed{how, numbers(count), residual};
      const auto bytes = packed.span();
      for (std::size_t size = 0; size < bytes.size(); size += 8)
        CHECK(!unpack(how.how, bytes.first(size), y));
      std::vector<float> more(count + 70'000);
      if (how.how != encoding::randomk) // randomk packs as many values for any length.
        CHECK(!unpack(how.how, bytes, more));
      CHECK(!unpack(how.how, bytes, std::span<float>{}));
      for (const auto unknown : {encoding::f32, static_cast<encoding>(7)}) {
        CHECK(!unpack(unknown, bytes, y));
        CHECK(!unpack(unknown, {}, y));
      }
    }
}

TEST_CASE("places that are no places are refused") {
  const compression how{encoding::topk, 0.01};
  const auto x = numbers(70'000);
  std::vector<float> residual, y(x.size());
  const packed_bytes_of good{how, x, residual};
  constexpr std::size_t k = 700, at_counts = 4 + 4 * k, at_places = at_counts + 8;
  const auto refused = [&](std::size_t offset, auto number) {
    auto words = good.words;
    std::memcpy(reinterpret_cast<std::byte*>(words.data()) + offset, &number, sizeof number);
    return !unpack(how.how, std::as_bytes(std::span{words}), y);
  };
  CHECK(refused(0, std::uint32_t{k + 1}));
  CHECK(refused(0, std::uint32_t{0}));
  CHECK(refused(0, ~std::uint32_t{0}));
  CHECK(refused(at_counts, std::uint32_t{k + 1}));
  CHECK(refused(at_counts, std::uint32_t{1}));
  CHECK(refused(at_counts, ~std::uint32_t{0}));
  CHECK(refused(at_places, std::uint16_t{65'535}));
  CHECK(refused(at_places + 2 * k - 2, std::uint16_t{65'535})); // It is behind the last element.
  std::uint16_t second = 0;
  std::memcpy(&second, reinterpret_cast<const std::byte*>(good.words.data()) + at_places + 2, 2);
  CHECK(refused(at_places, second)); // The same place comes twice.
}

TEST_CASE("a block of zeros is packed as zeros") {
  for (const auto& how : all) {
    const std::vector<float> zeros(1000);
    std::vector<float> residual, y(1000, 1.0f);
    REQUIRE(unpack(how.how, packed_bytes_of(how, zeros, residual).span(), y));
    CHECK(std::ranges::all_of(y, [](float each) { return each == 0.0f; }));
  }
}

} // namespace troupe::packing_test
