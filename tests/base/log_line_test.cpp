#include "base/log_line.hpp"

#include "doctest/doctest.h"

namespace log_line_test {

using namespace troupe;
using namespace std::chrono_literals;

TEST_CASE("a_line_of_a_log_has_its_time_in_milliseconds") {
  const std::chrono::system_clock::time_point at{1'700'000'000'042ms};
  const auto line = log_line("worker 1 starts", at);
  CHECK(line.starts_with("2023-11-1"));
  CHECK(line.ends_with(".042 worker 1 starts"));
  CHECK(without_time(line) == "worker 1 starts");
}

TEST_CASE("a_line_without_a_time_stays_as_it_is") {
  for (const char* line : {"", "ends", "2023-11-14", "terminate called after throwing an instance"})
    CHECK(without_time(line) == line);
}

} // namespace log_line_test
