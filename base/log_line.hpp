// Formats a line of a process's log: the time, then the text.
#pragma once

#include <chrono>
#include <string>

namespace troupe {

/// Returns, for example, "2026-11-22T22:23:08.123 worker 1 starts", in local time.
std::string log_line(const std::string& text, std::chrono::system_clock::time_point now);
/// Returns the text after the time; the whole line if it does not begin with a time.
std::string without_time(const std::string& line);

} // namespace troupe
