// Lines of text, and the numbers in them.
#include "examples/02_async_sgd/readers.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

using troupe::errc;
using troupe::failure;
using troupe::result;

namespace async_sgd {

namespace {

/// Errors: malformed, where the file is empty.
result<std::string> read_text(const std::string& path) {
  auto file = input_file::open(path);
  if (!file)
    return file.error();
  std::string text;
  for (std::size_t size = 0, step = 1u << 20;; step = text.size()) {
    text.resize(size + step);
    auto got = file->read({reinterpret_cast<std::uint8_t*>(text.data()) + size, step});
    if (!got)
      return got.error();
    size += *got;
    if (*got < step) {
      text.resize(size);
      break;
    }
  }
  if (text.empty())
    return {errc::malformed, "the file is empty: " + path};
  return text;
}

} // namespace

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

result<void> read_lines(const std::string& path, const line_taker& take) {
  const auto text = read_text(path);
  if (!text)
    return text.error();
  std::string_view rest = *text;
  for (std::uint32_t number = 1; !rest.empty(); ++number) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trim(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty())
      continue;
    if (const auto wrong = take(line, number))
      return bad_line(*wrong, path, number);
  }
  return {};
}

bool parse_number(std::string_view text, double& number) {
  if (text.starts_with('+'))
    text.remove_prefix(1);
  // Most values of sparse files are a single digit.
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '9') {
    number = text[0] - '0';
    return true;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr double most = std::numeric_limits<float>::max(); // Also refuses NaN and infinity.
  return error == std::errc{} && end == text.data() + text.size() && std::abs(number) <= most;
}

failure bad_line(const std::string& what, const std::string& path, std::uint32_t line) {
  return {errc::malformed, what + " (" + path + " line " + std::to_string(line) + ")"};
}

} // namespace async_sgd
