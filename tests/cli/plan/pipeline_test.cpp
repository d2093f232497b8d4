#include "cli/plan/pipeline.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace troupe::pipeline_test {

namespace {

using planning::pipeline_needs;
using names = std::vector<std::string>;

constexpr micro_order orders[] = {micro_order::fill_drain, micro_order::one_f_one_b};

pipeline_needs equal_parts(std::size_t parts, micro_order order, std::uint32_t micros) {
  return {.parts = std::vector<planning::line_costs::part>(parts, {0.02, 0.04}),
          .schedule = {order, 0},
          .samples = 64,
          .micros = micros,
          .activation_bytes = {}};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("plan: equal parts idle for (P - 1) / (M + P - 1) of the time") {
  for (const auto order : orders)
    for (const std::size_t parts : {2u, 3u})
      for (const std::uint32_t micros : {1u, 2u, 4u, 8u, 16u, 32u, 64u}) {
        const auto made = predict(equal_parts(parts, order, micros));
        REQUIRE(made);
        const auto more = static_cast<double>(parts - 1);
        const double bound = more / (micros + more);
        CHECK(planning::idle_of_equal_parts(parts, micros) == bound);
        CHECK(std::abs(made->idle - bound) < 1e-9);
        CHECK(std::abs(made->line.seconds - 0.06 / (1 - bound)) < 1e-9);
        for (const auto& part : made->line.parts)
          CHECK(std::abs(1 - part.busy_seconds / made->line.seconds - bound) < 1e-9);
      }
}

TEST_CASE("plan: the slowest part sets the pace, or all that are equal") {
  for (const auto order : orders) {
    auto needs = equal_parts(3, order, 32);
    CHECK(std::ranges::is_permutation(pace_of(needs)->names, names{"part 0", "part 1", "part 2"}));
    needs.parts[1] = {0.03, 0.06};
    CHECK(pace_of(needs)->names == names{"part 1"});
    CHECK(pace_of(needs)->effect > 0.9);
    // A link that needs less time than a part.
    needs.activation_bytes = {1e3};
    needs.network_per_second = 1e6;
    CHECK(pace_of(needs)->names.front() == "part 1");
  }
}

TEST_CASE("plan: a link that is slower than all parts sets the pace") {
  for (const auto order : orders) {
    auto needs = equal_parts(3, order, 32);
    needs.activation_bytes = {1e4, 2e5}; // 10 ms and 200 ms; a part needs 60 ms.
    needs.network_per_second = 1e6;
    const auto pace = pace_of(needs);
    CHECK(pace->names == names{"link 1-2"});
    const auto made = predict(needs);
    // With fill-drain, the directions of a link are never in use at one time.
    CHECK(made->line.seconds > (order == micro_order::fill_drain ? 0.4 : 0.2));
    CHECK(contains(*pipeline_text(needs), "pace is set by link 1-2: a batch takes "));
  }
}

TEST_CASE("plan: a part keeps the inputs that its order allows") {
  for (const auto order : orders)
    for (const std::uint32_t micros : {1u, 2u, 8u, 64u}) {
      auto needs = equal_parts(3, order, micros);
      needs.activation_bytes = {6.4e6, 640e3};
      const auto made = predict(needs);
      for (std::uint32_t part = 0; part < 3; ++part) {
        const auto& at = made->line.parts[part];
        const bool is_fill = order == micro_order::fill_drain;
        CHECK(at.kept_most == (is_fill ? micros : std::min(micros, 3 - part)));
        const auto held_most = is_fill ? micros : std::min(micros, part == 0 ? 3 : 4 - part);
        CHECK(at.held_most <= held_most);
        CHECK(at.held_most >= at.kept_most);
        CHECK(at.samples_most == at.held_most * 64 / micros);
      }
    }
  auto needs = equal_parts(3, micro_order::fill_drain, 8);
  needs.activation_bytes = {6.4e6, 640e3};
  CHECK(contains(*pipeline_text(needs), "8                8  6.4 MB\n"));
  CHECK(contains(*pipeline_text(needs), "8                8  640 kB\n"));
  needs.schedule.order =
    micro_order::one_f_one_b; // Part 2 holds at most 2 of the 8, as part 1 keeps 2.
  needs.activation_bytes = {6.4e6};
  CHECK(contains(*pipeline_text(needs), "1                2  1.6 MB\n"));
}

TEST_CASE("plan: the table has the powers of two and the chosen number of micro-batches") {
  auto needs = equal_parts(2, micro_order::one_f_one_b, 6);
  needs.samples = 20;
  const auto text = *pipeline_text(needs);
  for (const auto* const row :
       {"\n              1     120 ms        167   50.0 %       50.0 %\n", "\n              2  ",
        "\n              4  ", "\n*             6  ", "\n              8  ", "\n             16  "})
    CHECK(contains(text, row));
  CHECK_FALSE(contains(text, "\n             20  "));
  for (std::size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = text.find('\n', begin);
    CHECK(end - begin <= 100);
  }
}

TEST_CASE("plan: lists of parts and of activations have units") {
  const auto parts = planning::parse_parts("20ms/40ms,1s/1.5s");
  REQUIRE(parts);
  REQUIRE(parts->size() == 2);
  CHECK((*parts)[0].backward_seconds == doctest::Approx(0.04));
  CHECK((*parts)[1].forward_seconds == 1);
  CHECK(*planning::parse_activations("256KB,64KiB") == std::vector<double>{256e3, 65536});
  CHECK(planning::parse_parts("20ms/40ms").error().text == "a pipeline has 2 to 32 parts, not 1");
  CHECK(planning::parse_parts("1s/1s,").error().text
        == "'' is not the times of forward and backward of a part, as 20ms/40ms");
  CHECK(planning::parse_parts("1s/1s/1s,1s/1s").error().text
        == "'1s/1s' is not a time such as 100ms or 1.5s");
  CHECK(planning::parse_activations("1MB,").error().text
        == "'' is not a size such as 160MB or 64KiB");
}

} // namespace

} // namespace troupe::pipeline_test
