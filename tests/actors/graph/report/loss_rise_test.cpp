#include "actors/graph/report/loss_rise.hpp"

#include "doctest/doctest.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace loss_rise_test {

using namespace troupe;

namespace {

/// Returns the line after epochs of ten batches with these mean losses. Checks that there is one at
/// most.
std::optional<std::string> line_after(const std::vector<double>& means) {
  constexpr std::uint64_t batches = 10;
  loss_rise watch;
  std::optional<std::string> line;
  double sum = 0;
  std::uint64_t count = 0;
  for (const double mean : means)
    for (std::uint64_t i = 0; i < batches; ++i) {
      sum += mean;
      const auto told = watch.look(sum, ++count, batches);
      CHECK_FALSE((told && line));
      if (told)
        line = told;
    }
  return line;
}

} // namespace

TEST_CASE("a loss that rises above that of the first epoch is told once") {
  CHECK(line_after({0.5, 0.25, 0.75, 4, 9})
        == "the training loss rose from 0.25 to 0.75, each the mean of an epoch: the rate (--lr) "
           "may be too high");
  CHECK(line_after({2.3, 40}));
}

TEST_CASE("a loss that fluctuates or rises a little makes no line") {
  CHECK_FALSE(line_after({2.3}));
  CHECK_FALSE(line_after({2.3, 0.1, 0.9, 0.1, 2.2}));
  CHECK_FALSE(line_after({1, 0.9, 1.1, 1.3, 1.2}));
  CHECK_FALSE(line_after({0, 0, 0}));
}

TEST_CASE("losses below 0 and losses that are not finite make no line") {
  CHECK_FALSE(line_after({-2, -3, -1, 5}));
  CHECK_FALSE(line_after({1, std::numeric_limits<double>::quiet_NaN(), 2}));
  CHECK_FALSE(line_after({1, std::numeric_limits<double>::infinity()}));
}

TEST_CASE("several epochs of one look count as one") {
  loss_rise watch;
  CHECK_FALSE(watch.look(30, 30, 10));
  CHECK_FALSE(watch.look(30, 30, 10));
  CHECK(watch.look(60, 40, 10));
}

} // namespace loss_rise_test
