// Checks data sets that must not load, for the tests of all readers.
#pragma once

#include "examples/02_async_sgd/data/dataset.hpp"

#include "doctest/doctest.h"

#include <string>
#include <vector>

namespace async_sgd {

/// Checks that loading `text` fails with one bounded line that has all of `parts`.
inline void check_refused(const std::string& text, troupe::errc code,
                          const std::vector<std::string>& parts, const data_options& how = {}) {
  const auto data = load_dataset(text, how);
  CAPTURE(text);
  REQUIRE_FALSE(data);
  CAPTURE(data.error().text);
  CHECK(data.error().code == code);
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(data.error().text.find(part) != std::string::npos);
  }
  CHECK(data.error().text.find_first_of("\n\r\x1b") == std::string::npos);
  CHECK(data.error().text.size() < 400);
}

/// Returns the first remark that contains `part`; empty if there is none.
inline std::string remark_with(const dataset& data, const std::string& part) {
  for (const std::string& line : data.remarks)
    if (line.find(part) != std::string::npos)
      return line;
  return {};
}

} // namespace async_sgd
