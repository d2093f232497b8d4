#include "examples/07_lda/corpus.hpp"

#include "base/quote.hpp"
#include "base/splitmix64.hpp"
#include "examples/02_async_sgd/data/input_file.hpp"
#include "examples/02_async_sgd/data/text_lines.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

using troupe::errc;
using troupe::result;

namespace lda {

namespace {

constexpr std::uint64_t number_max = 10'000'000; ///< Of an id, and of a count.

/// A line of three numbers: a count of a word, or the sizes of the file.
struct triple {
  std::uint64_t document = 0, word = 0, count = 0;
};

using line_fault = std::optional<std::string>;

line_fault no_triple(const std::string& why) {
  return "a line must be `document word count`, three whole numbers" + why;
}

constexpr const char* form_of_sizes =
  "sizes in front are three lines or one: documents, words, lines of counts";
constexpr std::string_view matrix_market = "%%MatrixMarket matrix coordinate integer general";

line_fault limit_fault(const char* what, std::string_view word) {
  return std::string(what) + " " + troupe::quote(word) + " is above the limit of "
         + std::to_string(number_max);
}

/// Cuts the first word off `rest`.
std::string_view take_word(std::string_view& rest) {
  rest = rest.substr(std::min(rest.find_first_not_of(" \t"), rest.size()));
  const auto word = rest.substr(0, rest.find_first_of(" \t"));
  rest.remove_prefix(word.size());
  return word;
}

/// Takes the lines of a file one after the other. Documents and words have the ids of the file
/// until taken(): a first line of three numbers may turn out to be sizes, behind which ids count
/// from 1.
class line_taker {
public:
  /// Returns what is wrong with the line.
  line_fault take(std::string_view line, std::uint32_t number) {
    if (line.starts_with('%') && lines_ == 0 && sizes_.empty())
      return take_comment(line);
    std::array<std::string_view, 3> words;
    for (auto& word : words)
      word = take_word(line);
    std::array<std::uint64_t, 3> numbers{};
    const bool is_size = words[1].empty() && lines_ == 0 && sizes_.size() < 3;
    if (words[2].empty() && !words[1].empty() && lines_ == 0)
      return no_triple(std::string{", and "} + form_of_sizes);
    for (std::size_t i = 0; i < (is_size ? 1 : 3); ++i) {
      const auto word = words[i];
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), numbers[i]);
      if (error == std::errc::result_out_of_range)
        numbers[i] = ~std::uint64_t{0};
      else if (error != std::errc{} || end != word.data() + word.size())
        return no_triple("");
    }
    if (is_size) {
      sizes_.push_back(numbers[0]);
      return std::nullopt;
    }
    if (!take_word(line).empty())
      return no_triple("");
    if (sizes_.size() == 1 || sizes_.size() == 2)
      return no_triple(std::string{", and "} + form_of_sizes);
    if (is_matrix_market_ && sizes_.empty()) {
      sizes_.assign(numbers.begin(), numbers.end());
      return std::nullopt;
    }
    const triple x{numbers[0], numbers[1], numbers[2]};
    if (lines_++ == 0 && sizes_.empty()) {
      first_ = x;
      first_line_ = number;
      return x.count == 0 ? no_triple(", and its count is 0: leave the line out") : std::nullopt;
    }
    if (auto wrong = fault_of(x, words))
      return wrong;
    add(x, documents_[x.document].end());
    return std::nullopt;
  }

  /// Returns the corpus of the file `path`.
  result<corpus> taken(const std::string& path) && {
    if (first_)
      if (auto decided = decide_first(path); !decided)
        return decided.error();
    if (!sizes_.empty() && sizes_.size() < 3)
      return {errc::malformed, std::string{form_of_sizes} + ", and there are only "
                                 + std::to_string(sizes_.size()) + ": " + path};
    if (!sizes_.empty() && lines_ != sizes_[2])
      return {errc::malformed, path + " has " + std::to_string(lines_) + " lines of counts, and "
                                 + std::to_string(sizes_[2])
                                 + " by its sizes: is it cut off, or are the sizes wrong?"};
    const std::uint32_t least = sizes_.empty() ? 0 : 1;
    corpus all;
    all.words = words_max_ - least + 1;
    for (auto& [id, words] : documents_) {
      add_up(words);
      for (auto& x : words)
        x.word -= least;
      ((id - least) % 10 == 9 ? all.test : all.train).push_back(std::move(words));
    }
    return all;
  }

private:
  /// Takes a line of the head of a MatrixMarket file; the first one names its format.
  line_fault take_comment(std::string_view line) {
    if (!is_matrix_market_ && !line.starts_with("%%"))
      return no_triple("");
    const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    if (!is_matrix_market_ && !std::ranges::equal(line, matrix_market, {}, small, small))
      return "a MatrixMarket file must begin with `" + std::string{matrix_market} + "`";
    is_matrix_market_ = true;
    return std::nullopt;
  }

  /// Makes one count of those of each word.
  static void add_up(document& words) {
    std::ranges::stable_sort(words, {}, &word_count::word);
    document sums;
    for (const auto& x : words)
      if (!sums.empty() && sums.back().word == x.word)
        sums.back().count += x.count;
      else
        sums.push_back(x);
    words = std::move(sums);
  }

  /// Returns what is wrong with the numbers of a line of a count; `words` has their texts.
  line_fault fault_of(const triple& x, const std::array<std::string_view, 3>& words) const {
    if (x.count == 0)
      return no_triple(", and its count is 0: leave the line out");
    if (x.document > number_max)
      return limit_fault("document", words[0]);
    if (x.word > number_max)
      return limit_fault("word", words[1]);
    if (x.count > number_max)
      return limit_fault("count", words[2]);
    if (sizes_.empty())
      return std::nullopt;
    if (x.document == 0 || x.word == 0)
      return no_triple(", and ids count from 1 where sizes are in front");
    if (x.document > sizes_[0])
      return "document " + std::to_string(x.document) + ", and by its sizes the file has "
             + std::to_string(sizes_[0]);
    if (x.word > sizes_[1])
      return "word " + std::to_string(x.word) + ", and by its sizes the file has "
             + std::to_string(sizes_[1]);
    return std::nullopt;
  }

  void add(const triple& x, document::iterator before) {
    documents_[x.document].insert(
      before, {static_cast<std::uint32_t>(x.word), static_cast<float>(x.count)});
    documents_max_ = std::max(documents_max_, x.document);
    words_max_ = std::max(words_max_, static_cast<std::uint32_t>(x.word));
    counts_max_ = std::max(counts_max_, x.count);
    has_zero_ = has_zero_ || x.document == 0 || x.word == 0;
  }

  /// Takes the first line for three sizes if the other lines confirm all of them, and else for a
  /// count. A line that would be a strange count, and wrong sizes, is an error.
  result<void> decide_first(const std::string& path) {
    constexpr std::uint64_t lines_least = 3; ///< Fewer lines confirm nothing.
    const auto x = *first_;
    const auto behind = lines_ - 1;
    const bool holds_ids =
      !has_zero_ && documents_max_ <= x.document && words_max_ <= x.word && behind > 0;
    if (holds_ids && x.count == behind) {
      sizes_ = {x.document, x.word, x.count};
      lines_ = behind;
      return {};
    }
    const auto text =
      std::to_string(x.document) + " " + std::to_string(x.word) + " " + std::to_string(x.count);
    const bool is_strange = !has_zero_ && x.count > counts_max_ && behind >= lines_least;
    if (is_strange && (x.count == behind || (holds_ids && x.count > behind)))
      return async_sgd::bad_line(
        "`" + text + "` is no count, and as sizes it is wrong: " + std::to_string(behind)
          + " lines of counts follow, with documents up to " + std::to_string(documents_max_)
          + " and words up to " + std::to_string(words_max_),
        path, first_line_);
    const std::array words{std::to_string(x.document), std::to_string(x.word),
                           std::to_string(x.count)};
    if (auto wrong = fault_of(x, {words[0], words[1], words[2]}))
      return async_sgd::bad_line(*wrong, path, first_line_);
    add(x, documents_[x.document].begin());
    return {};
  }

  std::map<std::uint64_t, document> documents_;
  std::uint64_t documents_max_ = 0, counts_max_ = 0, lines_ = 0;
  std::uint32_t words_max_ = 0;
  bool has_zero_ = false;            ///< A document or a word has the id 0.
  std::vector<std::uint64_t> sizes_; ///< Documents, words and lines of counts, as the file says.
  bool is_matrix_market_ = false;
  std::optional<triple> first_; ///< The first line, if it has three numbers.
  std::uint32_t first_line_ = 0;
};

result<corpus> read_corpus(const std::string& path) {
  const auto bytes = async_sgd::read_bytes(path);
  if (!bytes)
    return bytes.error();
  const auto text = async_sgd::check_text({path, *bytes});
  if (!text)
    return text.error();
  line_taker taker;
  const auto read =
    async_sgd::read_lines({path, *text}, [&](std::string_view line, std::uint32_t number) {
      return taker.take(line, number);
    });
  if (!read)
    return read.error();
  auto all = std::move(taker).taken(path);
  if (!all)
    return all;
  if (all->train.empty() || all->test.empty())
    return {errc::malformed, "a corpus needs documents to train and, with numbers that end in 9, "
                             "to test: "
                               + path};
  all->file = path;
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
