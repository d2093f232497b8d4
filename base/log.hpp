// Writes a process's log through spdlog, a line for each text:
// "2026-11-22T22:23:08.123 info worker 1: starts as learners:1, pid 17", in local time.
#pragma once

#include "base/error.hpp"
#include "base/log_sink.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spdlog::sinks {
class sink;
}

namespace troupe {

/// Parses "trace", "debug", "info", "warn", "error", or "off", which leaves fatal lines only.
/// Errors: invalid_argument.
result<log_level> parse_log_level(std::string_view text);
/// Returns the text that parse_log_level() reads.
std::string to_string(log_level level);

/// Returns the line with its newline. Control characters of the text are replaced.
std::string log_line(log_level level, std::string_view member, std::string_view text);
/// Returns the text of a log's line; the whole line if it is none.
std::string text_of_line(const std::string& line);
/// Returns the level of a log's line; nullopt if it is none.
std::optional<log_level> level_of_line(std::string_view line);

/// Most bytes of a log's file.
constexpr std::uint64_t log_file_bytes_max = 16 << 20;

struct log_options {
  std::filesystem::path file{};
  std::string member{};              ///< "worker 1".
  log_level least = log_level::info; ///< Lines of lower levels are left out.
  /// Standard output and standard error go to the file, too, from the first line on.
  bool takes_output = false;
  std::uint64_t bytes_max = log_file_bytes_max;
};

/// A log of limited size; output that is not a line may exceed it until the next call. A line that
/// does not fit moves the file to FILE.1, in place of an older one, and begins a new file. Copies
/// write to the same log. Thread safety: any.
class log_file {
public:
  explicit log_file(log_options options);
  /// Errors: io_failed, if the file cannot be opened or written. The next line is tried anew.
  result<void> write(log_level level, std::string_view text) const;
  /// Begins a new file if output that is not a line has made this one too large.
  void keep_to_size() const;

private:
  log_options options_;
  std::shared_ptr<spdlog::sinks::sink> sink_;
};

} // namespace troupe
