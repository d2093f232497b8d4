#include "examples/07_lda/corpus.hpp"

#include "base/quote.hpp"
#include "base/splitmix64.hpp"
#include "examples/02_async_sgd/data/input_file.hpp"
#include "examples/02_async_sgd/data/text_lines.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

using troupe::errc;
using troupe::result;

namespace lda {

namespace {

constexpr std::uint32_t id_max = 10'000'000;

/// Cuts the first number off `rest`.
std::optional<std::uint32_t> take_number(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r"), rest.size()));
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc{} || number > id_max)
    return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return number;
}

/// Takes the lines of a file one after the other.
class line_taker {
public:
  /// Returns what is wrong with the line.
  std::optional<std::string> take(std::string_view line) {
    const auto first = take_number(line), second = take_number(line), third = take_number(line);
    const bool ends = line.find_first_not_of(" \t\r") == std::string_view::npos;
    if (first && !second && ends && documents_.empty() && sizes_ < 3) {
      ++sizes_;
      return std::nullopt;
    }
    const std::uint32_t least = sizes_ > 0 ? 1 : 0;
    if (!third || !ends || *third == 0 || std::min(*first, *second) < least)
      return "a line must be `document word count`, three whole numbers";
    documents_[*first - least].push_back({*second - least, static_cast<float>(*third)});
    words_ = std::max(words_, *second - least + 1);
    return std::nullopt;
  }

  corpus taken() && {
    corpus all;
    all.words = words_;
    for (auto& [id, words] : documents_)
      (id % 10 == 9 ? all.test : all.train).push_back(std::move(words));
    return all;
  }

private:
  std::map<std::uint32_t, document> documents_;
  std::uint32_t words_ = 0;
  int sizes_ = 0; ///< Lines of sizes so far, in front of the documents.
};

result<corpus> read_corpus(const std::string& path) {
  const auto bytes = async_sgd::read_bytes(path);
  if (!bytes)
    return bytes.error();
  const auto text = async_sgd::check_text({path, *bytes});
  if (!text)
    return text.error();
  line_taker taker;
  const auto read = async_sgd::read_lines(
    {path, *text}, [&](std::string_view line, std::uint32_t) { return taker.take(line); });
  if (!read)
    return read.error();
  auto all = std::move(taker).taken();
  if (all.train.empty() || all.test.empty())
    return {errc::malformed, "a corpus needs documents to train and, with numbers that end in 9, "
                             "to test: "
                               + path};
  all.file = path;
  return all;
}

/// Draws documents of three topics each; a topic prefers each tenth word.
corpus drawn_corpus() {
  constexpr std::uint32_t topics = 10, words = 600;
  troupe::splitmix64 random{1};
  const auto below = [&](std::uint32_t bound) {
    return static_cast<std::uint32_t>((random.next() >> 32) * bound >> 32);
  };
  corpus all;
  all.words = words;
  for (std::uint32_t id = 0; id < 2000; ++id) {
    std::map<std::uint32_t, float> counts;
    const std::uint32_t mix[] = {below(topics), below(topics), below(topics)};
    for (int i = 0; i < 100; ++i) {
      const auto rank = std::min(below(words / topics), below(words / topics));
      const auto common = below(10) == 0;
      ++counts[common ? below(words) : rank * topics + mix[below(3)]];
    }
    document made;
    for (const auto& [word, count] : counts)
      made.push_back({word, count});
    (id % 10 == 9 ? all.test : all.train).push_back(std::move(made));
  }
  return all;
}

} // namespace

result<corpus> load_corpus(const std::string& text) {
  constexpr std::string_view kind = "uci-bow:";
  if (text == "drawn")
    return drawn_corpus();
  if (text.starts_with(kind) && text.size() > kind.size())
    return read_corpus(text.substr(kind.size()));
  return {errc::invalid_argument,
          "unknown data set " + troupe::quote(text) + "; known: drawn, uci-bow:FILE"};
}

} // namespace lda
