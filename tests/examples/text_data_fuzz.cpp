// Feeds any bytes to the readers of CSV and LIBSVM text. Input: options, the length of the training
// text, the training text, the test text.
#include "examples/02_async_sgd/data/csv_file.hpp"
#include "examples/02_async_sgd/data/libsvm.hpp"
#include "tests/serialization/fuzz_main.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace async_sgd;

namespace {

constexpr std::size_t head_bytes = 3; // Options (1 byte), length (2).

void require(bool holds) {
  if (!holds)
    std::abort();
}

void check_line(const std::string& text) {
  require(!text.empty() && text.size() < 2000);
  require(text.find_first_of("\n\r\x1b") == std::string::npos);
}

void check_samples(const samples& from, const dataset& data) {
  for (const std::uint32_t label : from.labels)
    require(label < data.classes);
  if (const auto* dense = std::get_if<float_rows>(&from.rows)) {
    require(dense->values.size() == from.labels.size() * data.features);
    return;
  }
  const auto& rows = std::get<sparse_rows>(from.rows);
  require(rows.first.size() == from.labels.size() + 1);
  require(rows.first.back() == rows.columns.size() && rows.columns.size() == rows.values.size());
  for (const std::uint32_t column : rows.columns)
    require(column < data.features);
}

void check(const troupe::result<dataset>& data) {
  if (!data)
    return check_line(data.error().text);
  require(data->classes >= 2 && data->features >= 1);
  check_samples(data->train, *data);
  check_samples(data->test, *data);
  for (const std::string& line : data->remarks)
    check_line(line);
}

troupe::result<dataset> read_csv_pair(std::string_view train, std::string_view test,
                                      const data_options& options) {
  const std::string train_name = "train", test_name = "test";
  auto first = parse_csv({train_name, train}, options);
  if (!first)
    return first.error();
  auto second = parse_csv({test_name, test}, options, &*first);
  if (!second)
    return second.error();
  return join_csv(*std::move(first), *std::move(second));
}

troupe::result<dataset> read_libsvm_pair(std::string_view train, std::string_view test,
                                         const data_options& options) {
  const std::string train_name = "train", test_name = "test";
  auto first = parse_libsvm({train_name, train}, options);
  if (!first)
    return first.error();
  auto second = parse_libsvm({test_name, test}, options);
  if (!second)
    return second.error();
  // A data set of 2^28 features is valid but too slow for a fuzz target.
  if (std::max(first->features, second->features) > 1u << 16)
    return {troupe::errc::malformed, "many features"};
  return join_libsvm(*std::move(first), *std::move(second), options);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < head_bytes)
    return 0;
  const std::string_view text{reinterpret_cast<const char*>(data) + head_bytes, size - head_bytes};
  const std::size_t cut = std::min<std::size_t>(text.size(), data[1] + 256u * data[2]);
  const auto train = text.substr(0, cut);
  const auto test = cut == text.size() ? train : text.substr(cut);
  data_options options;
  options.zero_based = (data[0] & 2) != 0;
  if ((data[0] & 4) != 0)
    options.label = (data[0] & 8) != 0 ? "y" : std::to_string(data[0] >> 4);
  if ((data[0] & 1) != 0)
    check(read_csv_pair(train, test, options));
  else
    check(read_libsvm_pair(train, test, options));
  return 0;
}

#ifndef TROUPE_FUZZ_REPLAY
namespace {

std::string random_csv(troupe::test::random_source& random) {
  const char separator = ",;\t"[random.below(3)];
  std::string text = random.chance() ? std::string("x") + separator + "y\n" : "";
  for (auto rows = 2 + random.below(4); rows > 0; --rows)
    text += std::to_string(random.real()) + separator + std::to_string(random.below(2))
            + (random.chance() ? "\r\n" : "\n");
  return text;
}

std::string random_libsvm(troupe::test::random_source& random) {
  std::string text;
  for (auto rows = 2 + random.below(4); rows > 0; --rows) {
    text += std::to_string(random.below(2)) + (random.below(8) == 0 ? " qid:1" : "");
    for (std::uint64_t index = random.below(4); index < 8; index += 1 + random.below(3))
      text += " " + std::to_string(index) + ":" + std::to_string(random.real());
    text += "\n";
  }
  return text;
}

} // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return troupe::test::mutate_or_make(data, size, max_size, seed, [](auto& random) {
    std::string made(1, static_cast<char>(random.next()));
    const bool is_csv = (made[0] & 1) != 0;
    const std::string train = is_csv ? random_csv(random) : random_libsvm(random);
    made += {static_cast<char>(train.size() & 0xff), static_cast<char>(train.size() >> 8)};
    made += train + (is_csv ? random_csv(random) : random_libsvm(random));
    const auto* begin = reinterpret_cast<const std::byte*>(made.data());
    return std::vector<std::byte>{begin, begin + made.size()};
  });
}
#endif
