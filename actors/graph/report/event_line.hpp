// Writes what a run says as one JSON object a line, for programs that follow it
// (docs/reference/events.md).
#pragma once

#include "serialization/job_event.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace troupe {

/// Returns the line of an event, with its newline. `elapsed`: since the launcher's start.
std::string event_line(const job_event& what, std::chrono::nanoseconds elapsed,
                       std::chrono::system_clock::time_point now);
/// Reads such a line. Nullopt: it is no event, or of a kind that this version lacks.
std::optional<job_event> parse_event(const std::string& line);

} // namespace troupe
