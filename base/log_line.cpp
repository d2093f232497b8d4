#include "base/log_line.hpp"

#include "fmt/chrono.h"
#include "fmt/format.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace troupe {

namespace {

constexpr std::string_view pattern = "0000-00-00T00:00:00.000 ";

} // namespace

std::string log_line(const std::string& text, std::chrono::system_clock::time_point now) {
  const auto since = now.time_since_epoch();
  const auto part = std::chrono::duration_cast<std::chrono::milliseconds>(since).count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03} {}",
                     fmt::localtime(std::chrono::system_clock::to_time_t(now)), part, text);
}

std::string without_time(const std::string& line) {
  const auto fits = [](char wanted, char is) {
    return wanted == '0' ? std::isdigit(static_cast<unsigned char>(is)) != 0 : wanted == is;
  };
  const bool timed =
    line.size() >= pattern.size() && std::equal(pattern.begin(), pattern.end(), line.begin(), fits);
  return timed ? line.substr(pattern.size()) : line;
}

} // namespace troupe
