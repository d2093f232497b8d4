#include "kernels/rows.hpp"
#include "tests/cuda/same_bytes.hpp"
#include "tests/cuda/under_test.hpp"
#include "tests/numbers.hpp"

namespace troupe::test::rows_twin_test {

namespace {

/// How rows are named: all by chance, each twice or so; all the same; from the last to the first.
enum class naming { chance, same, falling };

std::vector<std::uint32_t> named(naming how, std::size_t count, std::size_t rows) {
  numbers random{count};
  std::vector<std::uint32_t> index(count);
  for (std::size_t i = 0; i < count; ++i)
    index[i] = static_cast<std::uint32_t>(how == naming::chance ? random.next() % rows
                                          : how == naming::same ? rows - 1
                                                                : rows - 1 - i % rows);
  return index;
}

} // namespace

TEST_CASE("devices: rows are gathered, and added to in the order in which they are named") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  for (const naming how : {naming::chance, naming::same, naming::falling})
    for (const std::size_t width : {1, 3, 64})
      for (const std::size_t count : {0, 1, 2, 3, 5, 255, 256, 257, 1000}) {
        CAPTURE(width);
        CAPTURE(count);
        const std::size_t table_rows = count / 2 + 1;
        numbers random{count + width};
        const auto index = named(how, count, table_rows);
        auto table = random.extremes(table_rows * width);
        const auto rows = random.extremes(count * width);
        const auto table_there = at.upload(table), rows_there = at.upload(rows);
        const auto index_there = at.upload(index);
        const auto order = at.upload(std::vector<std::uint64_t>(count, 77));
        kernels::scatter_add(table, rows, index, width);
        kernels::scatter_add(at.stream(), table_there.span(), rows_there.span(), index_there.span(),
                             width, order.span());
        CHECK(same_bytes(at.download(table_there), table));
        std::vector<float> gathered(rows.size());
        kernels::gather(gathered, table, index, width);
        kernels::gather(at.stream(), rows_there.span(), table_there.span(), index_there.span(),
                        width);
        CHECK(same_bytes(at.download(rows_there), gathered));
      }
}

} // namespace troupe::test::rows_twin_test
