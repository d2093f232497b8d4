// Writes what a run says as one JSON object a line, for programs that follow it
// (docs/reference/events.md).
#pragma once

#include "base/error.hpp"
#include "base/system/output_file.hpp"
#include "serialization/job_event.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

namespace troupe {

/// Reads a line of such a file. Nullopt: it is no event, or of a kind that this version lacks.
std::optional<job_event> parse_event(const std::string& line);

/// Thread safety: none. A full disk, or a pipe that is not read, costs lines and not the job.
class event_log {
public:
  /// Opens the file to append to it. Errors: io_failed.
  static result<event_log> open(const std::filesystem::path& file);

  /// `elapsed`: since the launcher's start. Errors: io_failed; the line may be missing.
  result<void> write(const job_event& what, std::chrono::nanoseconds elapsed,
                     std::chrono::system_clock::time_point now);

private:
  explicit event_log(appended_file file) : file_(std::move(file)) {}

  appended_file file_;
};

} // namespace troupe
