#include "actors/tables/initial_values.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace troupe::initial_values_test {

namespace {

table_spec table_of(initializer_kind kind, float scale) {
  table_spec table;
  table.name = "w1";
  table.shape = {100'000};
  table.init = {kind, scale};
  return table;
}

std::vector<float> values_of(const table_spec& table, std::uint64_t seed = 1,
                             std::uint64_t first = 0, std::size_t count = 100'000) {
  std::vector<float> values(count, -1.0f);
  fill_initial_values(seed, table, first, values);
  return values;
}

double mean(const std::vector<float>& values, int power) {
  double sum = 0.0;
  for (const float x : values)
    sum += std::pow(static_cast<double>(x), power);
  return sum / static_cast<double>(values.size());
}

TEST_CASE("zeros are zeros") {
  const auto values = values_of(table_of(initializer_kind::zeros, 3.0f));
  CHECK(std::all_of(values.begin(), values.end(), [](float x) { return x == 0.0f; }));
}

TEST_CASE("an element is the same wherever the stretch begins") {
  for (const auto kind : {initializer_kind::uniform, initializer_kind::normal}) {
    const table_spec table = table_of(kind, 0.1f);
    const auto all = values_of(table);
    const auto part = values_of(table, 1, 4097, 1000);
    CHECK(std::equal(part.begin(), part.end(), all.begin() + 4097));
  }
}

TEST_CASE("seed and name change every element") {
  for (const auto kind : {initializer_kind::uniform, initializer_kind::normal}) {
    table_spec table = table_of(kind, 0.1f);
    const auto first = values_of(table);
    const auto second = values_of(table, 2);
    table.name = "w2";
    const auto third = values_of(table);
    std::size_t equal = 0;
    for (std::size_t i = 0; i < first.size(); ++i)
      equal += (first[i] == second[i]) + (first[i] == third[i]) + (second[i] == third[i]);
    CHECK(equal < 10); // A few of 2^24 values are equal by chance.
  }
}

TEST_CASE("uniform values fill [-scale, scale) evenly") {
  const auto values = values_of(table_of(initializer_kind::uniform, 0.5f));
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  CHECK(*low >= -0.5f);
  CHECK(*high < 0.5f);
  // The bounds are five standard deviations of the estimates from 100,000 values.
  CHECK(std::abs(mean(values, 1)) < 5.0 * 0.5 / std::sqrt(3.0 * 1e5));
  CHECK(std::abs(mean(values, 2) - 0.25 / 3.0) < 5.0 * 0.25 * std::sqrt(4.0 / 45.0 / 1e5));
}

TEST_CASE("normal values have the moments of the normal distribution") {
  const auto values = values_of(table_of(initializer_kind::normal, 2.0f));
  CHECK(std::abs(mean(values, 1)) < 5.0 * 2.0 / std::sqrt(1e5));
  CHECK(std::abs(mean(values, 2) - 4.0) < 5.0 * 4.0 * std::sqrt(2.0 / 1e5));
  CHECK(std::abs(mean(values, 4) - 48.0) < 5.0 * 16.0 * std::sqrt(96.0 / 1e5));
}

TEST_CASE("neighbouring elements are not correlated") {
  for (const auto kind : {initializer_kind::uniform, initializer_kind::normal}) {
    const auto values = values_of(table_of(kind, 1.0f));
    double product = 0.0;
    for (std::size_t i = 1; i < values.size(); ++i)
      product += static_cast<double>(values[i]) * static_cast<double>(values[i - 1]);
    CHECK(std::abs(product / 1e5) < 5.0 / std::sqrt(1e5));
  }
}

TEST_CASE("a row is a function of seed, table and key, wherever it is made") {
  for (const auto kind : {initializer_kind::uniform, initializer_kind::normal}) {
    table_spec table = table_of(kind, 0.5f);
    const auto row = [&](std::uint64_t seed, std::uint64_t key, std::size_t width) {
      std::vector<float> values(width);
      row_initializer{seed, table}.fill(key, values);
      return values;
    };
    const auto first = row(1, 42, 16);
    const auto shorter = row(1, 42, 3);
    CHECK(std::equal(shorter.begin(), shorter.end(), first.begin()));
    CHECK(row(2, 42, 16) != first);
    CHECK(row(1, 43, 16) != first);
    table.name = "other";
    CHECK(row(1, 42, 16) != first);
    std::vector<float> column;
    for (std::uint64_t key = 0; key < 100'000; ++key)
      column.push_back(row(1, key, 1)[0]);
    CHECK(std::abs(mean(column, 1)) < 0.005);
    const double variance = kind == initializer_kind::uniform ? 0.25 / 3 : 0.25;
    CHECK(mean(column, 2) == doctest::Approx(variance).epsilon(0.02));
  }
}

TEST_CASE("the first floats of a row begin as 0 where the initializer says so") {
  auto table = table_of(initializer_kind::normal, 0.5f);
  std::vector<float> whole(4), zeros(4), all(4);
  row_initializer{1, table}.fill(42, whole);
  table.init.zeros = 1;
  row_initializer{1, table}.fill(42, zeros);
  CHECK(whole[0] != 0.0f);
  CHECK(zeros == std::vector{0.0f, whole[1], whole[2], whole[3]});
  table.init.zeros = 4;
  row_initializer{1, table}.fill(42, all);
  CHECK(all == std::vector<float>(4));
}

TEST_CASE("values never change between versions") {
  // A server without a checkpoint makes them anew, perhaps with another build than its
  // predecessor's. The expected values were computed apart from this program, from the header's
  // formulas.
  const auto uniform = values_of(table_of(initializer_kind::uniform, 1.0f), 1, 0, 3);
  const auto normal = values_of(table_of(initializer_kind::normal, 1.0f), 1, 0, 3);
  CHECK(uniform == std::vector{-0x1.5b7398p-1f, -0x1.f7a858p-2f, 0x1.0bfd00p-1f});
  CHECK(normal == std::vector{-0x1.90e2d0p-5f, -0x1.ea5312p-4f, -0x1.0d2e72p-4f});
}

} // namespace

} // namespace troupe::initial_values_test
