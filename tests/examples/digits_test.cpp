#include "examples/02_async_sgd/data/digits.hpp"

#include "examples/02_async_sgd/data/dataset.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

namespace async_sgd::digits_tests {

namespace {

using image = std::array<std::uint8_t, digit_pixels>;

image draw(std::uint64_t i) {
  image result;
  draw_digit(i, result);
  return result;
}

} // namespace

TEST_CASE("draws the same images everywhere and in any order") {
  std::uint64_t hash = 0xcbf29ce484222325u; // FNV-1a over 300 images.
  for (std::uint64_t i = 0; i < 70'000; i += 233)
    for (const std::uint8_t byte : draw(i))
      hash = (hash ^ byte) * 0x100000001b3u;
#ifndef __FMA__ // Fused multiply-add rounds less, so some pixels differ by one.
  CHECK(hash == 1306979590419812852u);
#endif
  const image third = draw(3);
  draw(4);
  CHECK(draw(3) == third);
}

TEST_CASE("images differ, and have ink in the middle and none in the corners") {
  std::vector<image> images;
  for (std::uint64_t i = 0; i < 500; ++i) {
    images.push_back(draw(i));
    const auto ink = std::ranges::count_if(images.back(), [](int pixel) { return pixel > 150; });
    CAPTURE(i);
    CHECK(ink > 15);
    CHECK(ink < 350);
    for (const std::size_t corner : {0u, 27u, 27u * 28u, 783u})
      CHECK(images.back()[corner] < 150);
  }
  std::ranges::sort(images);
  CHECK(std::ranges::adjacent_find(images) == images.end());
}

TEST_CASE("classes are balanced") {
  const auto data = load_dataset("digits");
  REQUIRE(data);
  CHECK(data->features == 784);
  CHECK(data->classes == 10);
  CHECK(data->train.labels.size() == 60'000);
  CHECK(data->test.labels.size() == 10'000);
  for (std::uint32_t digit = 0; digit < 10; ++digit) {
    CHECK(std::ranges::count(data->train.labels, digit) == 6000);
    CHECK(std::ranges::count(data->test.labels, digit) == 1000);
  }
}

TEST_CASE("gathers the drawn images, the test images behind the training images") {
  const auto data = load_dataset("digits");
  REQUIRE(data);
  const std::array<std::uint32_t, 3> which{7, 9999, 7};
  std::vector<float> rows(3 * digit_pixels);
  for (const auto& [part, first] :
       {std::pair{&data->train, std::uint64_t{0}}, std::pair{&data->test, digits_train}}) {
    gather(*part, digit_pixels, which, rows);
    for (std::size_t k = 0; k < which.size(); ++k) {
      const image expected = draw(first + which[k]);
      for (std::size_t i = 0; i < digit_pixels; ++i)
        REQUIRE(rows[k * digit_pixels + i] == static_cast<float>(expected[i]) * (1.0f / 255.0f));
    }
  }
}

TEST_CASE("threads may share the cache") {
  const digit_cache cache(100, 50);
  const auto read_all = [&cache](bool& right) {
    right = true;
    image scratch;
    for (std::uint64_t i = 0; i < 50; ++i)
      right = std::ranges::equal(cache.at(i, scratch), draw(100 + i)) && right;
  };
  std::array<bool, 3> right{};
  std::vector<std::jthread> threads;
  for (bool& flag : right)
    threads.emplace_back(read_all, std::ref(flag));
  threads.clear();
  CHECK(right == std::array{true, true, true});
}

} // namespace async_sgd::digits_tests
