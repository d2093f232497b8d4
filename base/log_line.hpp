// A line of a process's log: when it was said, then what.
#pragma once

#include <chrono>
#include <string>

namespace troupe {

/// "2026-11-22T22:23:08.123 worker 1 starts", in local time.
std::string log_line(const std::string& text, std::chrono::system_clock::time_point now);
/// What was said; the whole line where it does not begin with a time.
std::string without_time(const std::string& line);

} // namespace troupe
