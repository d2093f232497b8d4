#include "actors/protocol/pipeline/batch_cut.hpp"

#include "actors/protocol/pipeline/micro_order.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace troupe::batch_cut_test {

namespace {

TEST_CASE("micro-batches cover a batch, and the larger ones come first") {
  const batch_cut cut{10, 4};
  REQUIRE(cut.count() == 4);
  const std::size_t begins[] = {0, 3, 6, 8}, sizes[] = {3, 3, 2, 2};
  for (std::uint32_t i = 0; i < 4; ++i) {
    CHECK(cut[i].begin == begins[i]);
    CHECK(cut[i].size == sizes[i]);
  }
  CHECK(cut[0].weight == 0.3);
  CHECK(cut[3].weight == 0.2);
}

TEST_CASE("each cut has sizes that differ by at most one, and no gap") {
  for (std::size_t samples = 1; samples <= 40; ++samples)
    for (std::uint32_t micros = 1; micros <= 12; ++micros) {
      const batch_cut cut{samples, micros};
      CHECK(cut.count() == std::min<std::size_t>(samples, micros));
      std::size_t end = 0;
      for (std::uint32_t i = 0; i < cut.count(); ++i) {
        CHECK(cut[i].begin == end);
        CHECK(cut[i].size <= cut[0].size);
        CHECK(cut[i].size + 1 >= cut[0].size);
        CHECK((i == 0 || cut[i].size <= cut[i - 1].size));
        end += cut[i].size;
      }
      CHECK(end == samples);
    }
}

TEST_CASE("a batch with fewer samples has fewer micro-batches") {
  const batch_cut cut{3, 8};
  CHECK(cut.count() == 3);
  CHECK(cut[2].size == 1);
}

TEST_CASE("an order of micro-batches has one name") {
  CHECK(*parse_micro_order("fill-drain") == micro_order::fill_drain);
  CHECK(*parse_micro_order("1f1b") == micro_order::one_f_one_b);
  CHECK(to_string(micro_order::one_f_one_b) == std::string{"1f1b"});
  CHECK(parse_micro_order("gpipe").error().text
        == "'gpipe' is no order of micro-batches: use fill-drain or 1f1b");
}

} // namespace

} // namespace troupe::batch_cut_test
