// What a launcher says: on the screen, and in RUN/logs/console.log once there is a run directory.
#pragma once

#include "actors/graph/options/options.hpp"
#include "actors/graph/report/progress.hpp"
#include "actors/graph/report/run_report.hpp"
#include "actors/roles/observer/evaluator_actor.hpp"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A launcher's main thread checks its processes this often when no signal wakes it.
constexpr std::chrono::milliseconds launcher_interval{20};
/// The time between two pictures of the progress.
constexpr std::chrono::milliseconds show_interval{100};

/// Thread safety: none.
class run_console {
public:
  explicit run_console(std::string program);

  /// Where there can be no file there is the screen.
  void keep_in(const std::filesystem::path& run_directory, const std::vector<std::string>& command);

  void event(const std::string& text, std::chrono::nanoseconds elapsed);
  void show(const progress_snapshot& now);
  /// Leaves the last picture standing.
  void finish();
  /// As it is, with its newline.
  void say(const std::string& text);
  /// On standard error, behind the program's name.
  void complain(const std::string& why);

private:
  void keep(const std::string& text);

  struct close_file {
    void operator()(std::FILE* x) const { std::fclose(x); }
  };
  std::string program_;
  progress_display screen_;
  std::unique_ptr<std::FILE, close_file> file_;
  std::optional<progress_display> kept_; ///< Writes to it.
};

/// A judgement goes into the statistics; what it remarks, and why there is none, is an event.
void take_evaluation(const evaluation_message& verdict, time_point now,
                     std::chrono::nanoseconds elapsed, run_statistics& statistics,
                     run_console& console);

/// To the file that was asked for, if one was. False: it could not be written, and that is said.
bool leave_report(const run_options& options, const std::vector<std::string>& command,
                  const run_statistics& statistics, run_console& console);

} // namespace troupe
