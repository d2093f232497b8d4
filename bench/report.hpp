// Prints figures in aligned columns for people, or as one JSON object a line for programs.
#pragma once

#include "bench/statistics.hpp"

#include "nlohmann/json.hpp"

#include <string>
#include <vector>

namespace troupe::bench {

/// One line of figures; each call adds a column with that title, and in JSON the field `key`.
class row {
public:
  row& text(const std::string& key, const std::string& title, const std::string& value);
  row& number(const std::string& key, const std::string& title, double value, int digits);
  /// Adds "median (min .. max)"; in JSON also KEY_min and KEY_max.
  row& range(const std::string& key, const std::string& title, const spread& value, int digits);
  /// Adds "p50 / p99 / p99.9"; in JSON KEY_p50, KEY_p99 and KEY_p999.
  row& times(const std::string& key, const std::string& title, const percentiles& value,
             int digits);
  /// Adds a field to JSON alone; the title of the table says it.
  row& hidden(const std::string& key, const nlohmann::ordered_json& value);

private:
  friend void print(const std::string& title, const std::vector<row>& rows, bool as_json);

  struct cell {
    std::string title, text;
  };
  std::vector<cell> cells_;
  nlohmann::ordered_json values_ = nlohmann::ordered_json::object();
};

/// Prints one table. Requires: all rows have the same columns.
void print(const std::string& title, const std::vector<row>& rows, bool as_json);

/// Prints the table of a case, with the busy processors before it, which the caller measured, and
/// after it, which this function measures; in JSON the fields load_before and load_after.
void print_case(const std::string& title, std::vector<row> rows, bool as_json, double load_before);

/// Returns "4 B", "64 KB", "40 MB".
std::string size_text(std::size_t bytes);

} // namespace troupe::bench
