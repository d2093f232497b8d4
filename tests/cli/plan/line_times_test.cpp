// Runs whole lines of flows in virtual time, and compares idle shares and kept inputs with theory.
#include "cli/plan/line_times.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace troupe::line_times_test {

namespace {

using planning::line_costs;
using planning::line_times;
using planning::virtual_line;

line_times times_of(const line_costs& costs, micro_order order, std::size_t samples,
                    std::uint32_t micros, std::uint32_t ahead = 0) {
  virtual_line one(costs, {order, ahead});
  const auto made = one.run({samples, micros});
  REQUIRE(made);
  return *made;
}

line_costs equal_parts(std::uint32_t parts, double forward, double backward, double link = 0) {
  return {std::vector<line_costs::part>(parts, {forward, backward}),
          std::vector<double>(parts - 1, link)};
}

TEST_CASE("both orders leave a part idle for (P - 1) / (M + P - 1) of the time, within bounds") {
  for (const auto order : {micro_order::fill_drain, micro_order::one_f_one_b})
    for (const std::uint32_t parts : {1u, 2u, 3u, 4u})
      for (const std::uint32_t micros : {1u, 2u, 4u, 8u})
        for (const double backward_time : {1, 2}) {
          CAPTURE(to_string(order));
          CAPTURE(parts);
          CAPTURE(micros);
          // A micro-batch takes 1 and backward_time.
          virtual_line one(equal_parts(parts, micros, micros * backward_time), {order, 0});
          for (int batch = 1; batch <= 3; ++batch) {
            const auto made = one.run({micros, micros});
            REQUIRE(made);
            const auto took = made->seconds;
            const auto busy = micros * (1 + backward_time); // Of each part.
            // idle / took = (P - 1) / (M + P - 1), in whole numbers.
            CHECK((took - busy) * (micros + parts - 1) == (parts - 1) * took);
            CHECK(made->loss == micros);
            for (std::uint32_t part = 0; part < parts; ++part) {
              const auto& at = made->parts[part];
              const bool is_fill = order == micro_order::fill_drain;
              CHECK(at.busy_seconds == busy);
              CHECK(at.kept_most == (is_fill ? micros : std::min(micros, parts - part)));
              CHECK(at.held_most <= (is_fill ? micros : std::min(micros, parts - part + 1)));
            }
          }
        }
}

TEST_CASE("a micro-batch takes its share of a batch's times, and links carry one after another") {
  // Samples of the micro-batches: 3, 2. One part computes 5 s forward and 10 s backward.
  CHECK(times_of({{{5, 10}}, {}}, micro_order::fill_drain, 5, 2).seconds == 15);
  // Part 0 ends forward at 3 and 5. The link carries from 3 to 9, and from 9 to 13.
  const line_costs slow_link{{{5, 5}, {5, 10}}, {10}};
  // Part 1 ends forward at 12 and 15, backward at 21 and 25. The link carries from 21 to 27, and
  // from 27 to 31. Part 0 ends backward at 30 and 33.
  const auto fill = times_of(slow_link, micro_order::fill_drain, 5, 2);
  CHECK(fill.seconds == 33);
  CHECK(fill.parts[0].busy_seconds == 10);
  CHECK(fill.parts[1].busy_seconds == 15);
  CHECK(fill.parts[1].held_most == 2);
  CHECK(fill.parts[1].samples_most == 5);
  // Part 1 ends forward, backward, forward, backward at 12, 18, 20, 24. The link carries from 18 to
  // 24, and from 24 to 28. Part 0 ends backward at 27 and 30.
  const auto one_by_one = times_of(slow_link, micro_order::one_f_one_b, 5, 2);
  CHECK(one_by_one.seconds == 30);
  CHECK(one_by_one.parts[1].kept_most == 1);
  CHECK(one_by_one.parts[1].held_most == 2);
}

TEST_CASE("a computation that ends is taken before a word that comes at the same time") {
  // Part 1 forgets its first input at 4, when the second one comes.
  const auto held = times_of({{{4, 2}, {2, 2}}, {0}}, micro_order::one_f_one_b, 2, 2);
  CHECK(held.seconds == 7);
  CHECK(held.parts[1].held_most == 1);
  // Part 0 ends its first backward at 7, when the second gradient comes. It computes forward from 7
  // to 8, so the last gradient comes at 12, and its backward ends at 14.
  const auto made = times_of({{{3, 6}, {3, 3}}, {3}}, micro_order::one_f_one_b, 3, 3);
  CHECK(made.seconds == doctest::Approx(14).epsilon(1e-12));
}

TEST_CASE("with 1f1b a part holds no more inputs than the part above keeps, whatever is slow") {
  for (const double link : {0.0, 3.0, 40.0})
    for (const std::uint32_t slow : {0u, 1u, 2u, 3u})
      for (const std::uint32_t micros : {1u, 3u, 8u, 32u}) {
        auto costs = equal_parts(4, 7, 13, link);
        costs.parts[slow].forward_seconds *= 5;
        const auto made = times_of(costs, micro_order::one_f_one_b, 64, micros);
        for (std::uint32_t part = 0; part < 4; ++part) {
          CHECK(made.parts[part].kept_most <= std::min(micros, 4 - part));
          CHECK(made.parts[part].kept_most <= made.parts[part].held_most);
          CHECK(made.parts[part].held_most <= std::min(micros, 4 - part + (part == 0 ? 0 : 1)));
        }
      }
}

TEST_CASE("with 1f1b a link that is as slow as a part costs nothing if parts are ahead") {
  for (const std::uint32_t parts : {2u, 3u, 5u})
    for (const double link : {0.5, 1.0}) {
      // A micro-batch needs 1 in each part and `link` in each direction of a link.
      const auto costs = equal_parts(parts, 40, 80, 120 * link);
      const auto time_with = [&](std::uint32_t ahead) {
        return times_of(costs, micro_order::one_f_one_b, 120, 120, ahead).seconds;
      };
      const auto whole = times_of(costs, micro_order::fill_drain, 120, 120).seconds;
      // Each part computes 120, and the first and last micro-batches pass the line.
      const auto least = 120 + (parts - 1) * (1 + 2 * link);
      CHECK(time_with(2) <= least + 1);
      CHECK(time_with(0) > 1.3 * time_with(2));
      CHECK(time_with(2) < whole);
      const auto made = times_of(costs, micro_order::one_f_one_b, 120, 120, 2);
      for (std::uint32_t part = 0; part < parts; ++part)
        CHECK(made.parts[part].kept_most <= 1 + 3 * (parts - part - 1));
    }
}

TEST_CASE("times may be as small or as large as a command line has them") {
  for (const double scale : {1e-300, 1e-6, 1.0, 1e18})
    for (const auto order : {micro_order::fill_drain, micro_order::one_f_one_b}) {
      const auto made = times_of(equal_parts(3, scale, 2 * scale), order, 70, 10);
      // Forward and backward of 7 samples of 70 each, 12 times one after the other.
      CHECK(made.seconds / scale == doctest::Approx(3.6).epsilon(1e-12));
    }
}

} // namespace

} // namespace troupe::line_times_test
