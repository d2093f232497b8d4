// Reading files, lines, numbers and labels.
#include "examples/02_async_sgd/readers.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

using troupe::errc;
using troupe::failure;
using troupe::result;

namespace async_sgd {

namespace {

gzFile as_gz(void* file) { return static_cast<gzFile>(file); }

/// Why reading stopped; Z_OK at a proper end.
result<void> check_end(gzFile file, const std::string& path) {
  int code = Z_OK;
  const std::string text = gzerror(file, &code);
  if (code == Z_OK || code == Z_STREAM_END)
    return {};
  if (code == Z_ERRNO)
    return {errc::io_failed, "cannot read " + path + ": " + std::strerror(errno)};
  if (code == Z_BUF_ERROR)
    return {errc::damaged, "compressed data end too early in " + path};
  return {errc::damaged, "compressed data are damaged in " + path};
}

} // namespace

void input_file::closer::operator()(void* file) const { gzclose(as_gz(file)); }

result<input_file> input_file::open(const std::string& path) {
  errno = 0;
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file)
    return {errc::io_failed,
            "cannot open " + path + ": " + (errno ? std::strerror(errno) : "out of memory")};
  gzbuffer(file, 1u << 18);
  return input_file(path, file);
}

result<std::size_t> input_file::read(std::span<std::uint8_t> out) {
  constexpr std::size_t piece_max = 1u << 30; // gzread counts in int.
  std::size_t done = 0;
  while (done < out.size()) {
    const auto want = static_cast<unsigned>(std::min(out.size() - done, piece_max));
    const int got = gzread(as_gz(file_.get()), out.data() + done, want);
    if (got > 0)
      done += static_cast<std::size_t>(got);
    if (got < 0 || static_cast<unsigned>(got) < want) {
      if (auto end = check_end(as_gz(file_.get()), path_); !end)
        return end.error();
      break;
    }
  }
  return done;
}

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

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

bool line_reader::next(std::string_view& line) {
  while (!rest_.empty()) {
    const auto end = std::min(rest_.find('\n'), rest_.size());
    line = trim(rest_.substr(0, end));
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    if (!line.empty())
      return true;
  }
  return false;
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

result<std::map<std::string, std::uint32_t>> number_labels(const label_column& train,
                                                           const std::string& path) {
  constexpr std::size_t classes_max = 1000; // More is a column of numbers, not of classes.
  std::map<std::string, std::uint32_t> classes;
  for (const std::string& label : train.labels) {
    classes.emplace(label, 0);
    if (classes.size() > classes_max)
      return {errc::malformed,
              "more than " + std::to_string(classes_max) + " different labels in " + path};
  }
  if (classes.size() < 2)
    return {errc::malformed, "fewer than 2 different labels in " + path};
  std::vector<std::pair<double, std::string>> order;
  bool numeric = true;
  for (const auto& [label, unused] : classes) {
    double number = 0.0;
    numeric = parse_number(label, number) && numeric;
    order.emplace_back(number, label);
  }
  if (numeric) // Otherwise the map's order stays.
    std::ranges::sort(order);
  for (std::uint32_t i = 0; i < order.size(); ++i)
    classes[order[i].second] = i;
  return classes;
}

result<std::vector<std::uint32_t>> to_classes(const label_column& column,
                                              const std::map<std::string, std::uint32_t>& classes,
                                              const std::string& path) {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(column.labels.size());
  for (std::size_t i = 0; i < column.labels.size(); ++i) {
    const auto found = classes.find(column.labels[i]);
    if (found == classes.end())
      return bad_line("label '" + column.labels[i] + "' does not occur in the training file", path,
                      column.lines[i]);
    numbers.push_back(found->second);
  }
  return numbers;
}

} // namespace async_sgd
