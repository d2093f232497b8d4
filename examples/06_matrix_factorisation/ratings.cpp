#include "examples/06_matrix_factorisation/ratings.hpp"

#include "base/quote.hpp"
#include "base/splitmix64.hpp"
#include "examples/02_async_sgd/data/input_file.hpp"
#include "examples/02_async_sgd/data/text_lines.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

using troupe::errc;
using troupe::result;

namespace factorisation {

namespace {

/// Cuts the first word off `rest`.
std::string_view take_word(std::string_view& rest) {
  rest = rest.substr(std::min(rest.find_first_not_of(" \t"), rest.size()));
  const auto word = rest.substr(0, rest.find_first_of(" \t"));
  rest.remove_prefix(word.size());
  return word;
}

bool parse_key(std::string_view word, std::uint32_t& key) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), key);
  return error == std::errc{} && end == word.data() + word.size();
}

std::optional<std::string> take_rating(std::string_view line, std::vector<rating>& to) {
  rating read;
  double value = 0;
  const auto user = take_word(line), item = take_word(line), text = take_word(line);
  if (!parse_key(user, read.user))
    return "bad user " + troupe::quote(user);
  if (!parse_key(item, read.item))
    return "bad item " + troupe::quote(item);
  if (!async_sgd::parse_number(text, value))
    return "bad rating: " + async_sgd::number_fault(text);
  read.value = static_cast<float>(value);
  to.push_back(read);
  return std::nullopt;
}

result<std::vector<rating>> read_ratings(const std::string& path) {
  const auto bytes = async_sgd::read_bytes(path);
  if (!bytes)
    return bytes.error();
  const auto text = async_sgd::check_text({path, *bytes});
  if (!text)
    return text.error();
  std::vector<rating> all;
  const auto read = async_sgd::read_lines(
    {path, *text}, [&](std::string_view line, std::uint32_t) { return take_rating(line, all); });
  if (!read)
    return read.error();
  if (all.empty())
    return {errc::malformed, "no line has a rating: " + path};
  return all;
}

/// Draws ratings 1 .. 5 from four hidden factors of each user and item, and noise.
class rating_source {
public:
  rating draw() {
    const rating who{below(1000), below(1500), 0};
    double value = 3.5 + noise() / 4;
    for (std::uint64_t k = 0; k < 4; ++k)
      value += factor(who.user * 4 + k) * factor(1'000'000 + who.item * 4 + k);
    return {who.user, who.item, static_cast<float>(std::min(5.0, std::max(1.0, value)))};
  }

private:
  static double in_unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }
  static double factor(std::uint64_t number) {
    return 2 * in_unit(troupe::splitmix64{number}.next()) - 1;
  }
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(in_unit(random_.next()) * bound);
  }
  double noise() { return 2 * in_unit(random_.next()) - 1; }

  troupe::splitmix64 random_{1};
};

ratings drawn_ratings() {
  ratings all;
  rating_source source;
  for (int i = 0; i < 80'000; ++i)
    all.train.push_back(source.draw());
  for (int i = 0; i < 20'000; ++i)
    all.test.push_back(source.draw());
  return all;
}

result<ratings> read_both(const std::string& train, const std::string& test) {
  auto first = read_ratings(train);
  if (!first)
    return first.error();
  auto second = read_ratings(test);
  if (!second)
    return second.error();
  return ratings{*std::move(first), *std::move(second), 0, {train, test}};
}

} // namespace

result<ratings> load_ratings(const std::string& text) {
  constexpr std::string_view kind = "movielens:";
  const auto comma = text.find(',');
  const bool is_pair = text.starts_with(kind) && comma != std::string::npos && comma > kind.size()
                       && comma + 1 < text.size();
  if (text != "drawn" && !is_pair)
    return {errc::invalid_argument,
            "unknown data set " + troupe::quote(text) + "; known: drawn, movielens:TRAIN,TEST"};
  auto all = is_pair
               ? read_both(text.substr(kind.size(), comma - kind.size()), text.substr(comma + 1))
               : drawn_ratings();
  if (!all)
    return all;
  double sum = 0;
  for (const auto& each : all->train)
    sum += each.value;
  all->mean = static_cast<float>(sum / static_cast<double>(all->train.size()));
  return all;
}

} // namespace factorisation
