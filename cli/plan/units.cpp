#include "cli/plan/units.hpp"

#include "fmt/format.h"

#include <cmath>
#include <cstdlib>
#include <span>
#include <string_view>

namespace troupe::planning {

namespace {

struct unit {
  std::string_view name;
  double value;
};

constexpr unit sizes[] = {{"", 1},         {"B", 1},        {"kB", 1e3},    {"KB", 1e3},
                          {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},   {"KiB", 0x1p10},
                          {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
constexpr unit rates[] = {
  {"MB/s", 1e6}, {"GB/s", 1e9}, {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8}, {"Tbit/s", 1e12 / 8}};
constexpr unit times[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}};

constexpr double value_max = 1e18; // Bytes (a second) or seconds, above any real value.

result<double> parse(const std::string& text, std::span<const unit> units, std::string_view form) {
  char* rest = nullptr;
  const double number = std::strtod(text.c_str(), &rest);
  const std::string_view written(rest);
  const auto name = written.substr(std::min(written.find_first_not_of(' '), written.size()));
  for (const auto& each : units)
    if (rest != text.c_str() && name == each.name && std::isfinite(number * each.value)) {
      if (!(number * each.value > 0))
        return {errc::invalid_argument, fmt::format("'{}' is not above 0", text)};
      if (number * each.value > value_max)
        return {errc::invalid_argument, fmt::format("'{}' is too large", text)};
      return number * each.value;
    }
  return {errc::invalid_argument, fmt::format("'{}' is not {}", text, form)};
}

std::string show(double value, double step, std::span<const std::string_view> names) {
  std::size_t i = 0;
  while (i + 1 < names.size() && value >= 999.5) {
    value /= step;
    ++i;
  }
  return fmt::format("{:.3g} {}", value, names[i]);
}

} // namespace

result<double> parse_bytes(const std::string& text) {
  return parse(text, sizes, "a size such as 160MB or 64KiB");
}

result<double> parse_rate(const std::string& text) {
  return parse(text, rates, "a rate such as 10Gbit/s or 16GB/s");
}

result<double> parse_seconds(const std::string& text) {
  return parse(text, times, "a time such as 100ms or 1.5s");
}

std::string show_bytes(double bytes) {
  static constexpr std::string_view names[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  return show(bytes, 1000, names);
}

std::string show_rate(double per_second) { return show_bytes(per_second) + "/s"; }

std::string show_bits(double per_second) {
  static constexpr std::string_view names[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
  return show(8 * per_second, 1000, names);
}

std::string show_seconds(double seconds) {
  struct scale {
    double below, unit;
    std::string_view name;
  };
  static constexpr scale scales[] = {
    {999.5e-6, 1e-6, "us"}, {0.9995, 1e-3, "ms"}, {600, 1, "s"}, {36'000, 60, "min"}};
  for (const auto& [below, unit_seconds, name] : scales)
    if (seconds < below) {
      const double value = seconds / unit_seconds;
      const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
      return fmt::format("{:.{}f} {}", value, decimals, name);
    }
  return fmt::format("{:.0f} h", seconds / 3600);
}

} // namespace troupe::planning
