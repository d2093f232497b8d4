// Writes a launcher's output: on the screen, and as a log in RUN/logs/console.log once there is a
// run directory. A run inside another program has no screen, and its lines go to that program.
#pragma once

#include "actors/graph/options/options.hpp"
#include "actors/graph/report/progress.hpp"
#include "actors/graph/report/run_report.hpp"
#include "actors/roles/observer/evaluator_actor.hpp"
#include "base/log.hpp"
#include "base/system/output_file.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The time between two pictures of the progress.
constexpr std::chrono::milliseconds show_interval{100};

/// The output of one launcher. Thread safety: none.
class run_console {
public:
  explicit run_console(std::string program);
  /// Writes nothing on the screen. `log`: takes each line; may be null.
  run_console(std::string program, log_sink log);

  /// Sets other names of members, which events show, too, such as "line:2" for "actor 1".
  void also_name(std::map<std::string, std::string> names) { names_ = std::move(names); }
  /// Puts these names into a picture.
  void name_members(progress_snapshot& now) const;

  /// Logs the command and later output in the run directory. A full disk must not end the job, so
  /// errors of the log are ignored.
  void log_in_run_directory(const run_options& options, const std::vector<std::string>& command);

  /// Writes events to the file, too. Errors: io_failed.
  result<void> log_events(const std::filesystem::path& file,
                          const std::vector<std::string>& command);

  void event(const job_event& what, std::chrono::nanoseconds elapsed);
  void show(const progress_snapshot& now);
  /// Leaves the last picture on the screen.
  void finish();
  /// Writes a text as it is, with its newline.
  void say(const std::string& text);
  /// Writes an error to standard error, behind the program's name.
  void complain(const std::string& why);

private:
  void log(log_level level, const std::string& text);
  void log_progress(const progress_snapshot& now);
  std::string sentence_of(job_event what) const;
  /// Writes an event, and tells once if one could not be written.
  void write_event(const job_event& what, std::chrono::nanoseconds elapsed);

  std::string program_;
  std::map<std::string, std::string> names_;
  std::optional<progress_display> screen_;
  log_sink log_;
  std::optional<appended_file> events_; ///< A full disk, or a pipe that is not read, costs lines.
  bool lacks_events_ = false;           ///< A line that could not be written was told.
  std::optional<std::chrono::nanoseconds> progress_at_; ///< Time of the last progress event.
  job_phase progress_phase_ = job_phase::gathering;
};

/// Adds the result of an evaluation to the statistics. Its remarks and its error become events.
void take_evaluation(const evaluation_message& what, time_point now,
                     std::chrono::nanoseconds elapsed, run_statistics& statistics,
                     run_console& console);

/// Writes the report to the file of --report, if given. Prints an error, and returns it: io_failed.
result<void> leave_report(const run_options& options, const std::vector<std::string>& command,
                          const run_statistics& statistics, run_console& console);

} // namespace troupe
