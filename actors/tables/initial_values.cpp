#include "actors/tables/initial_values.hpp"

#include "base/splitmix64.hpp"
#include "serialization/rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <string>

namespace troupe {

namespace {

std::uint64_t key_of(std::uint64_t job_seed, const std::string& name) {
  std::uint64_t key = splitmix64{job_seed}.next();
  for (const char c : name)
    key = splitmix64{key ^ static_cast<unsigned char>(c)}.next();
  return key;
}

std::uint64_t bits(std::uint64_t key, std::uint64_t counter) {
  return splitmix64_of(key + counter * splitmix64_step);
}

float uniform(std::uint64_t key, std::uint64_t element, float scale) {
  // 24 bits fill the significand of a float: u in [-1, 1) is exact.
  const auto whole = static_cast<float>(bits(key, element) >> 40);
  return scale * (whole * 0x1p-23f - 1.0f);
}

float normal(std::uint64_t key, std::uint64_t element, float scale) {
  // In (0, 1], so that the logarithm is finite, and [0, 1).
  const double u = static_cast<double>((bits(key, 2 * element) >> 11) + 1) * 0x1p-53;
  const double v = static_cast<double>(bits(key, 2 * element + 1) >> 11) * 0x1p-53;
  const double z = std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
  return static_cast<float>(z * static_cast<double>(scale));
}

void fill(const initializer& how, std::uint64_t key, std::uint64_t first, std::span<float> values) {
  const float scale = how.scale;
  switch (how.kind) {
  case initializer_kind::zeros: std::fill(values.begin(), values.end(), 0.0f); break;
  case initializer_kind::uniform:
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = uniform(key, first + i, scale);
    break;
  case initializer_kind::normal:
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = normal(key, first + i, scale);
    break;
  }
}

} // namespace

void fill_initial_values(std::uint64_t job_seed, const table_spec& table, std::uint64_t first,
                         std::span<float> values) {
  fill(table.init, key_of(job_seed, table.name), first, values);
}

row_initializer::row_initializer(std::uint64_t job_seed, const table_spec& table)
    : table_key_(key_of(job_seed, table.name)), how_(table.init) {}

void row_initializer::fill(std::uint64_t key, std::span<float> row) const {
  troupe::fill(how_, splitmix64_of(table_key_ ^ row_hash(key)), 0, row);
  std::fill_n(row.begin(), std::min<std::size_t>(how_.zeros, row.size()), 0.0f);
}

} // namespace troupe
