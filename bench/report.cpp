#include "bench/report.hpp"

#include "bench/machine_load.hpp"

#include "fmt/core.h"

#include <algorithm>
#include <cstdio>

namespace troupe::bench {

namespace {

std::string figure(double value, int digits) { return fmt::format("{:.{}f}", value, digits); }

} // namespace

row& row::text(const std::string& key, const std::string& title, const std::string& value) {
  cells_.push_back({title, value});
  values_[key] = value;
  return *this;
}

row& row::number(const std::string& key, const std::string& title, double value, int digits) {
  cells_.push_back({title, figure(value, digits)});
  values_[key] = value;
  return *this;
}

row& row::range(const std::string& key, const std::string& title, const spread& value, int digits) {
  cells_.push_back({title, fmt::format("{} ({} .. {})", figure(value.median, digits),
                                       figure(value.min, digits), figure(value.max, digits))});
  values_[key] = value.median;
  values_[key + "_min"] = value.min;
  values_[key + "_max"] = value.max;
  return *this;
}

row& row::times(const std::string& key, const std::string& title, const percentiles& value,
                int digits) {
  cells_.push_back({title, fmt::format("{} / {} / {}", figure(value.p50, digits),
                                       figure(value.p99, digits), figure(value.p999, digits))});
  values_[key + "_p50"] = value.p50;
  values_[key + "_p99"] = value.p99;
  values_[key + "_p999"] = value.p999;
  return *this;
}

row& row::hidden(const std::string& key, const nlohmann::ordered_json& value) {
  values_[key] = value;
  return *this;
}

void print(const std::string& title, const std::vector<row>& rows, bool as_json) {
  if (as_json) {
    for (const auto& x : rows)
      fmt::print("{}\n", x.values_.dump());
  } else if (!rows.empty()) {
    std::vector<std::size_t> widths;
    for (const auto& x : rows.front().cells_)
      widths.push_back(x.title.size());
    for (const auto& x : rows)
      for (std::size_t i = 0; i < x.cells_.size(); ++i)
        widths[i] = std::max(widths[i], x.cells_[i].text.size());
    fmt::print("\n{}\n", title);
    for (std::size_t i = 0; i < widths.size(); ++i)
      fmt::print("  {:<{}}", rows.front().cells_[i].title, i + 1 == widths.size() ? 0 : widths[i]);
    fmt::print("\n");
    for (const auto& x : rows) {
      for (std::size_t i = 0; i < widths.size(); ++i)
        fmt::print("  {:<{}}", x.cells_[i].text, i + 1 == widths.size() ? 0 : widths[i]);
      fmt::print("\n");
    }
  }
  std::fflush(stdout);
}

void print_case(const std::string& title, std::vector<row> rows, bool as_json, double load_before) {
  const double load_after = busy_processors();
  for (auto& x : rows)
    x.hidden("load_before", load_before).hidden("load_after", load_after);
  print(
    fmt::format("{}; busy processors {:.2f} before, {:.2f} after", title, load_before, load_after),
    rows, as_json);
}

std::string size_text(std::size_t bytes) {
  if (bytes >= 1 << 20 && bytes % (1 << 20) == 0)
    return fmt::format("{} MB", bytes >> 20);
  if (bytes >= 1 << 10 && bytes % (1 << 10) == 0)
    return fmt::format("{} KB", bytes >> 10);
  return fmt::format("{} B", bytes);
}

} // namespace troupe::bench
