#include "actors/graph/report/run_console.hpp"

#include "actors/graph/report/run_result.hpp"
#include "base/log_line.hpp"
#include "base/quote.hpp"
#include "base/system/resource_limits.hpp"

#include "fmt/format.h"

#include <cmath>
#include <system_error>
#include <utility>

namespace troupe {

run_console::run_console(std::string program)
    : program_(std::move(program)),
      screen_(stdout, progress_display::is_terminal(stdout), progress_display::wants_color()) {}

void run_console::keep_in(const std::filesystem::path& run_directory,
                          const std::vector<std::string>& command) {
  const auto file = run_directory / "logs" / "console.log";
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  file_.reset(std::fopen(file.c_str(), "ae"));
  if (!file_)
    return;
  const auto line = fmt::format("{}", fmt::join(command, " "));
  keep(log_line(line, std::chrono::system_clock::now()) + "\n");
  kept_.emplace(file_.get(), false);
}

void run_console::event(const std::string& text, std::chrono::nanoseconds elapsed) {
  const auto line = printable(text);
  screen_.event(line, elapsed);
  if (kept_)
    kept_->event(line, elapsed);
}

void run_console::show(const progress_snapshot& now) {
  screen_.show(now);
  if (kept_)
    kept_->show(now);
}

void run_console::finish() { screen_.finish(); }

void run_console::say(const std::string& text) {
  fmt::print("{}", text);
  std::fflush(stdout);
  keep(text);
}

void run_console::complain(const std::string& why) {
  const auto line = fmt::format("{}: {}\n", program_, printable(with_limits(why)));
  fmt::print(stderr, "{}", line);
  keep(line);
}

void run_console::keep(const std::string& text) {
  if (!file_)
    return;
  // A full disk costs this file, not the job.
  [[maybe_unused]] const auto written = std::fwrite(text.data(), 1, text.size(), file_.get());
  std::fflush(file_.get());
}

void take_evaluation(const evaluation_message& verdict, time_point now,
                     std::chrono::nanoseconds elapsed, run_statistics& statistics,
                     run_console& console) {
  if (!verdict.failed.empty())
    console.event("no evaluation: " + verdict.failed, elapsed);
  if (!verdict.found)
    return;
  const auto& found = *verdict.found;
  if (!found.note.empty())
    console.event(found.note, elapsed);
  if (!std::isfinite(found.loss))
    console.event("the loss of the evaluation is NaN or infinite: some values or predictions are "
                  "beyond the range of float32",
                  elapsed);
  statistics.evaluated(verdict.number, found.loss, found.accuracy, found.auc, now);
}

bool leave_report(const run_options& options, const std::vector<std::string>& command,
                  const run_statistics& statistics, run_console& console) {
  if (!options.report_file)
    return true;
  const auto json = statistics.to_json(fmt::format("{}", fmt::join(command, " ")));
  const auto written = write_report(*options.report_file, json);
  if (!written)
    console.complain(written.error().text);
  return static_cast<bool>(written);
}

} // namespace troupe
