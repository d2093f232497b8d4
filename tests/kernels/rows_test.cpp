#include "kernels/rows.hpp"

#include "tests/kernels/cpu_targets.hpp"
#include "tests/numbers.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace troupe::kernels::rows_test {

namespace {

constexpr std::array<std::size_t, 8> widths{1, 2, 3, 8, 16, 17, 64, 131};

struct problem {
  std::vector<float> table, rows;
  std::vector<std::uint32_t> index;
};

/// A tenth as many rows in the table as are named: each comes about ten times.
problem make_problem(std::size_t count, std::size_t width, bool denormal) {
  test::numbers random{count * 1000 + width};
  const auto value = [&] {
    return denormal ? random.extreme(-130, -129) : random.extreme(-30, 30);
  };
  const std::size_t table_rows = count / 10 + 1;
  problem p;
  for (std::size_t i = 0; i < table_rows * width; ++i)
    p.table.push_back(value());
  for (std::size_t i = 0; i < count; ++i)
    p.index.push_back(static_cast<std::uint32_t>(random.next() % table_rows));
  for (std::size_t i = 0; i < count * width; ++i)
    p.rows.push_back(value());
  return p;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, {}, std::bit_cast<std::uint32_t, float>,
                            std::bit_cast<std::uint32_t, float>);
}

template <class Check>
void on_all_problems(const Check& check) {
  on_every_target([&] {
    for (const std::size_t count : test::awkward_sizes)
      for (const std::size_t width : widths)
        for (const bool denormal : {false, true}) {
          CAPTURE(count);
          CAPTURE(width);
          check(make_problem(count, width, denormal), width);
        }
  });
}

} // namespace

TEST_CASE("gather copies the rows that are named, in that order") {
  on_all_problems([](problem p, std::size_t width) {
    std::vector<float> expected;
    for (const std::uint32_t row : p.index)
      for (std::size_t k = 0; k < width; ++k)
        expected.push_back(p.table[row * width + k]);
    gather(p.rows, p.table, p.index, width);
    CHECK(same_bits(p.rows, expected));
  });
}

TEST_CASE("scatter_add adds the rows one after the other, each sum rounded once") {
  on_all_problems([](problem p, std::size_t width) {
    std::vector<float> expected = p.table;
    std::vector<double> exact(p.table.begin(), p.table.end()), sizes_sum(p.table.size());
    std::vector<double> additions(p.table.size());
    std::ranges::transform(p.table, sizes_sum.begin(), [](float x) { return std::fabs(x); });
    for (std::size_t i = 0; i < p.index.size(); ++i)
      for (std::size_t k = 0; k < width; ++k) {
        const std::size_t at = p.index[i] * width + k;
        const float x = p.rows[i * width + k];
        expected[at] = static_cast<float>(double{expected[at]} + double{x});
        exact[at] += x, sizes_sum[at] += std::fabs(x), additions[at] += 1;
      }
    scatter_add(p.table, p.rows, p.index, width);
    REQUIRE(same_bits(p.table, expected));
    for (std::size_t at = 0; at < p.table.size(); ++at)
      REQUIRE(std::fabs(double{p.table[at]} - exact[at])
              <= (additions[at] * 0x1p-24 + 0x1p-40) * sizes_sum[at]);
  });
}

TEST_CASE("rows carry NaN and infinity, and leave rows that nobody names alone") {
  on_every_target([] {
    const float infinity = std::numeric_limits<float>::infinity();
    std::vector<float> table(5 * 3, 1.0f);
    scatter_add(table, std::vector<float>{infinity, -infinity, std::nanf("")},
                std::vector<std::uint32_t>{3}, 3);
    CHECK(table[9] == infinity);
    CHECK(table[10] == -infinity);
    CHECK(std::isnan(table[11]));
    CHECK(std::ranges::count(table, 1.0f) == 12);
  });
}

} // namespace troupe::kernels::rows_test
