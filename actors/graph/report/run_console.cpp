#include "actors/graph/report/run_console.hpp"

#include "actors/graph/report/event_line.hpp"
#include "actors/graph/report/run_result.hpp"
#include "base/quote.hpp"
#include "base/system/resource_limits.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <system_error>
#include <utility>
#include <variant>

namespace troupe {

namespace {

// Between two events of progress in one phase.
constexpr std::chrono::seconds progress_interval{1};

} // namespace

run_console::run_console(std::string program) : program_(std::move(program)) {
  screen_.emplace(stdout, progress_display::is_terminal(stdout), progress_display::wants_color());
}

run_console::run_console(std::string program, log_sink log)
    : program_(std::move(program)), log_(std::move(log)) {}

void run_console::log_in_run_directory(const run_options& options,
                                       const std::vector<std::string>& command) {
  const auto file = std::filesystem::path{options.run_directory} / "logs" / "console.log";
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  log_ = [to = log_file{{.file = file, .member = "launcher", .least = options.log_level}}](
           log_level level, const std::string& text) { (void)to.write(level, text); };
  log(log_level::info, fmt::format("{}", fmt::join(command, " ")));
}

result<void> run_console::log_events(const std::filesystem::path& file,
                                     const std::vector<std::string>& command) {
  auto opened = appended_file::open(file);
  if (!opened)
    return opened.error();
  events_.emplace(std::move(*opened));
  event({event_kind::run_started, {{"command", fmt::format("{}", fmt::join(command, " "))}}},
        std::chrono::nanoseconds{0});
  return {};
}

void run_console::event(const job_event& what, std::chrono::nanoseconds elapsed) {
  write_event(what, elapsed);
  const auto line = printable(sentence_of(what));
  if (line.empty())
    return;
  if (screen_)
    screen_->event(line, elapsed);
  log(log_level::info, line);
}

void run_console::name_members(progress_snapshot& now) const {
  for (auto& each : now.processes)
    if (const auto found = names_.find(spoken_name(each)); found != names_.end())
      each.name_in_options = found->second;
}

/// Returns the event's sentence, where both names of a member stand.
std::string run_console::sentence_of(job_event what) const {
  for (auto& [field, value] : what.fields)
    if (auto* const member = std::get_if<std::string>(&value); member && field == "member")
      if (const auto found = names_.find(*member); found != names_.end())
        *member += fmt::format(" ({})", found->second);
  return text_of(what);
}

void run_console::log_progress(const progress_snapshot& now) {
  if (progress_at_ && now.phase == progress_phase_
      && now.elapsed < *progress_at_ + progress_interval)
    return;
  progress_at_ = now.elapsed;
  progress_phase_ = now.phase;
  log(log_level::info, render_line(now));
  write_event(event_of(now), now.elapsed);
}

void run_console::write_event(const job_event& what, std::chrono::nanoseconds elapsed) {
  if (!events_)
    return;
  const auto written = events_->write(event_line(what, elapsed, std::chrono::system_clock::now()));
  if (written || std::exchange(lacks_events_, true))
    return;
  const auto line = written.error().text + "; events are missing in this file";
  if (screen_)
    screen_->event(line, elapsed);
  log(log_level::warn, line);
}

void run_console::show(const progress_snapshot& now) {
  log_progress(now);
  if (screen_)
    screen_->show(now);
}

void run_console::finish() {
  if (screen_)
    screen_->finish();
}

void run_console::say(const std::string& text) {
  if (screen_) {
    fmt::print("{}", text);
    std::fflush(stdout);
  }
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);)
    if (!line.empty())
      log(log_level::info, line);
}

void run_console::complain(const std::string& why) {
  const auto text = with_limits(why);
  if (screen_)
    fmt::print(stderr, "{}: {}\n", program_, printable(text));
  log(log_level::error, text);
}

void run_console::log(log_level level, const std::string& text) {
  if (log_)
    log_(level, text);
}

/// Names each figure of an evaluation that is NaN or infinite.
static void report_not_finite(const evaluation_message& what, std::chrono::nanoseconds elapsed,
                              run_console& console) {
  auto checked = what.found->measures;
  checked.push_back({"loss", what.found->loss});
  if (what.found->accuracy)
    checked.push_back({"accuracy", *what.found->accuracy});
  std::erase_if(checked, [](const auto& x) { return std::isfinite(x.value); });
  if (checked.empty())
    return;
  const bool from_finite = std::ranges::all_of(what.parameters, [](const auto& table) {
    return std::ranges::all_of(table, [](float x) { return std::isfinite(x); });
  });
  for (const auto& each : checked)
    console.event(
      {event_kind::evaluation_not_finite,
       {{"measure", each.name},
        {"value", std::string{std::isnan(each.value) ? "NaN" : "infinite"}},
        {"reason", std::string{from_finite ? "the parameters are finite, so the evaluator made it"
                                           : "some parameters are NaN or infinite"}}}},
      elapsed);
}

void take_evaluation(const evaluation_message& what, time_point now,
                     std::chrono::nanoseconds elapsed, run_statistics& statistics,
                     run_console& console) {
  if (what.failed)
    console.event({event_kind::evaluation_failed, {{"reason", what.failed->text}}}, elapsed);
  if (!what.found)
    return;
  const auto& found = *what.found;
  job_event evaluated{event_kind::evaluated, {{"epoch", what.number}, {"loss", found.loss}}};
  if (found.accuracy)
    evaluated.fields.push_back({"accuracy", *found.accuracy});
  if (found.auc)
    evaluated.fields.push_back({"auc", *found.auc});
  for (const auto& each : found.measures)
    evaluated.fields.push_back({each.name, each.value});
  console.event(evaluated, elapsed);
  if (!found.note.empty())
    console.event(note_of(found.note), elapsed);
  report_not_finite(what, elapsed, console);
  statistics.evaluated(what.number, found, now);
}

result<void> leave_report(const run_options& options, const std::vector<std::string>& command,
                          const run_statistics& statistics, run_console& console) {
  if (!options.report_file)
    return {};
  const auto json = statistics.to_json(fmt::format("{}", fmt::join(command, " ")));
  auto written = write_outputs({{*options.report_file, json + "\n"}});
  if (!written)
    console.complain(written.error().text);
  return written;
}

} // namespace troupe
