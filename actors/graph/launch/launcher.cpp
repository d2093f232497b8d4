#include "actors/graph/launch/launcher.hpp"

#include "actors/graph/launch/run_setup.hpp"
#include "actors/graph/launch/slow_calls.hpp"
#include "actors/graph/report/missing_members.hpp"
#include "actors/graph/report/run_console.hpp"
#include "actors/graph/report/run_report.hpp"
#include "actors/graph/report/run_result.hpp"
#include "actors/graph/run_failed.hpp"
#include "actors/protocol/session/session.hpp"
#include "base/clock.hpp"
#include "base/exception_text.hpp"
#include "base/quote.hpp"
#include "base/system/directory_lock.hpp"
#include "base/system/process_memory.hpp"
#include "base/system/resource_limits.hpp"
#include "base/user_code.hpp"
#include "storage/job_difference.hpp"

#include "fmt/format.h"

#include <poll.h>
#include <signal.h>

#include <chrono>
#include <functional>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

/// The ties of a launcher to its process.
struct launcher_place {
  /// Returns the signals that came, and lines on calls that became slow.
  std::function<end_watch::news(std::chrono::milliseconds)> wait;
  /// Takes note that the run has its result, as end_watch::over().
  std::function<void(int status, std::optional<std::string> why)> over;
  run_console console;
};

launcher_place own_process(const plan& what, end_watch& end) {
  end.run_begins();
  return {[&end](std::chrono::milliseconds timeout) { return end.wait(timeout); },
          [&end](int status, std::optional<std::string> why) { end.over(status, std::move(why)); },
          run_console{what.program}};
}

/// A process of another program: without screen and signals.
launcher_place inside(const plan& what, log_sink log) {
  return {[calls = std::make_shared<slow_calls>()](std::chrono::milliseconds timeout) {
            poll(nullptr, 0, static_cast<int>(timeout.count()));
            return end_watch::news{std::nullopt, calls->look(open_calls(), steady_now())};
          },
          [](int, std::optional<std::string>) {}, run_console{what.program, std::move(log)}};
}

class launcher {
public:
  launcher(const plan& what, std::vector<std::string> command, launcher_place place)
      : plan_(what), command_(std::move(command)), job_(what.job),
        statistics_(job_, node_roles_of(plan_)), place_(std::move(place)) {
    console_.also_name(names_in_options(plan_));
  }

  int run(const backend_maker& make) {
    required(check_tensor_files(options_, job_), bad_command_line);
    require_outputs(plan_);
    required(load_certificates(options_)); // Before there are directories.
    started_at_ = steady_now();
    try {
      train(make);
    } catch (const run_failed& why) {
      event(end_of_run(why.status, failure{why.code, why.what()}));
      if (backend_)
        backend_->end();
      place_.over(why.status, why.what());
      throw;
    }
    place_.over(end_->status, std::nullopt);
    return end_->status;
  }

  /// Runs the job, and returns its report. Throws run_failed.
  report run_and_report(const backend_maker& make) {
    keeps_values_ = true;
    if (run(make) != EXIT_SUCCESS)
      throw run_failed{*session_->failed()};
    report made{.seconds = std::chrono::duration<double>(time() - started_at_).count(),
                .epochs = job_.epochs,
                .counts = statistics_.counts(),
                .json = statistics_.to_json(name_)};
    if (const auto found = statistics_.last_evaluation())
      made.last = found->found;
    for (std::size_t i = 0; i < last_values_.size(); ++i)
      if (!job_.tables[i].is_sparse())
        made.values.emplace(job_.tables[i].name, std::move(last_values_[i]));
    return made;
  }

private:
  void train(const backend_maker& make) {
    prepare_files();
    backend_ = make({plan_, command_, [this](const notice& what) { tell(what); }});
    started_at_ = backend_->begun_at(started_at_);
    statistics_.job_started(started_at_);
    session_options options;
    options.joined = options_.join.has_value();
    options.exports = options_.export_file.has_value();
    options.batches_per_epoch = job_.batches_per_epoch();
    backend_->describe(options);
    has_processes_ = !options.processes.empty();
    session_.emplace(std::move(options), started_at_);
    take(time_passed{});
    while (!end_)
      round();
    if (end_->abandoned)
      throw run_failed{*end_->why, end_->status};
  }

  void prepare_files() {
    std::vector<notice> held; // Until there is a log.
    auto made =
      required(prepare_directories(plan_, [&](const notice& what) { held.push_back(what); }));
    locks_ = std::move(made.locks);
    if (made.keeps_logs) {
      console_.log_in_run_directory(options_, command_);
      console_.say(fmt::format("{}: logs in {}\n", name_, printable(options_.run_directory)));
    }
    if (options_.events_file)
      required(console_.log_events(*options_.events_file, command_));
    for (const auto& each : plan_.notices)
      tell(each);
    for (const auto& each : held)
      tell(each);
  }

  // -- while it runs --

  void round() {
    const auto [signal, slow] = place_.wait(backend_->pause());
    auto news = backend_->tick();
    for (const auto& line : slow)
      event({event_kind::process_waits, {{"text", line}}});
    if (signal && *signal != SIGCHLD)
      take(stop_asked{*signal});
    for (const auto& each : news.events)
      take(each);
    for (auto& each : news.evaluated)
      take_evaluation(std::move(each));
    if (const auto latest = backend_->status(session_->report()))
      follow(*latest);
    take(time_passed{});
    if (const auto now = time(); !end_ && now - shown_at_ >= show_interval) {
      const auto picture = snapshot(now);
      if (const auto line = has_processes_ ? missing_.look(picture, now) : std::nullopt)
        event({event_kind::process_waits, {{"text", *line}}});
      show(picture);
      shown_at_ = now;
    }
  }

  void follow(const job_update& news) {
    const auto& status = news.desired_state;
    if (session_->options().joined && status.job != job_spec{} && status.job != job_)
      follow_main_host(status.job);
    if (session_->options().joined
        && status.directory_mark != std::exchange(directory_mark_, status.directory_mark))
      required(check_shared_directory(options_, status.directory_mark));
    if (!news.stop) // After a stop, processes that leave do as they were told.
      statistics_.observe(status, time());
    take(news);
  }

  void follow_main_host(const job_spec& job) {
    if (auto differs = graph_difference(job, job_); !differs.empty())
      required({errc::invalid_argument, std::move(differs)});
    if (const auto line = overruled(options_, job_, job); !line.empty())
      take(notice{.text = line});
    for (const auto& line : storage::option_differences(job, job_, "the main host's job"))
      take(notice{.text = line});
    job_ = job;
    statistics_.follow(job);
  }

  progress_snapshot snapshot(time_point now) const {
    auto picture = statistics_.snapshot(now);
    console_.name_members(picture);
    return picture;
  }

  void show(const progress_snapshot& picture) {
    // The final picture waits for the final accuracy.
    if (session_->options().joined || picture.phase != job_phase::finished
        || session_->report().done)
      console_.show(picture);
  }

  // -- the session --

  void take(const session_event& what) {
    for (const auto& effect : session_->take(what, time()))
      std::visit([this](const auto& each) { carry_out(each); }, effect);
  }

  void carry_out(const start_effect& what) {
    if (auto begun = backend_->start(what.who); begun)
      take(*begun);
    else
      take(process_not_started{what.who, begun.error()});
  }
  void carry_out(const kill_effect& what) { backend_->kill(what.who); }
  void carry_out(const evaluate_effect& what) { backend_->evaluate(what.epoch); }
  void carry_out(const say_effect& what) { event(what.what); }
  void carry_out(const lost_effect& what) {
    statistics_.process_died(what.what.member, what.what.killed_at, what.what.detected_at);
  }
  void carry_out(const recovered_effect&) { statistics_.coordinator_back(time()); }

  void take_evaluation(evaluation_message what) {
    const auto now = time();
    troupe::take_evaluation(what, now, now - started_at_, statistics_, console_);
    last_values_ = std::move(what.parameters);
    take(epoch_evaluated{what.failed});
    if (!keeps_values_)
      last_values_.clear();
  }

  void carry_out(const trained_effect& what) {
    statistics_.job_finished(time());
    if (!what.exports)
      return;
    auto values = keeps_values_ ? last_values_ : std::exchange(last_values_, {});
    const auto written = export_parameters(*options_.export_file, job_, std::move(values));
    is_exported_ = static_cast<bool>(written);
    take(file_written{written ? std::nullopt : std::optional{written.error()}});
  }

  /// Writes all that a run leaves.
  void carry_out(const results_effect&) {
    statistics_.resident_memory("launcher", peak_rss_bytes());
    backend_->complete(statistics_);
    show(snapshot(time()));
    console_.finish();
    backend_->end();
    if (const auto& why = session_->failed())
      console_.complain(why->text);
    const auto left = leave_report(options_, command_, statistics_, console_);
    take(file_written{left ? std::nullopt : std::optional{left.error()}});
  }

  void carry_out(const end_effect& what) {
    end_ = what;
    if (what.abandoned)
      return;
    event(end_of_run(what.status, what.why));
    if (session_->options().joined)
      return;
    if (what.status > 128)
      console_.say(fmt::format(
        "{}: {}\n", name_,
        text_of_stop(session_->checkpoint(), session_->is_saved(), options_, is_exported_)));
    console_.say(summary(statistics_));
    console_.say(backend_->summary(statistics_));
    std::fflush(stdout);
  }

  time_point time() const { return backend_ ? backend_->now() : steady_now(); }
  void event(const job_event& what) { console_.event(what, time() - started_at_); }
  /// Shows a notice before there is a session.
  void tell(const notice& what) { event(note_of(what.text)); }

  plan plan_;
  run_options& options_ = plan_.options; ///< Directories get their names in a run.
  const std::string& name_ = plan_.program;
  std::vector<std::string> command_;
  job_spec job_; ///< On a host that joined: that of the main host.
  run_statistics statistics_;
  launcher_place place_;
  run_console& console_ = place_.console;
  std::vector<storage::directory_lock> locks_;
  std::unique_ptr<backend> backend_;
  std::optional<session> session_;
  std::optional<end_effect> end_;
  missing_members missing_;
  bool has_processes_ = false;
  std::vector<std::vector<float>> last_values_; ///< Of the tables, as last evaluated.
  bool keeps_values_ = false;                   ///< They are part of the result.
  bool is_exported_ = false;
  std::uint64_t directory_mark_ = 0; ///< Of the main host's checkpoint directory.
  time_point started_at_{0};         ///< By the backend's clock.
  time_point shown_at_{0};
};

} // namespace

int run_launcher(const plan& what, const std::vector<std::string>& command, end_watch& end,
                 const backend_maker& make) {
  launcher now{what, command, own_process(what, end)};
  return now.run(make);
}

result<report> run_inside(const plan& what, log_sink log, const backend_maker& make) {
  try {
    launcher now{what, {}, inside(what, std::move(log))};
    return now.run_and_report(make);
  } catch (const run_failed& why) {
    return failure{why.code, why.what()};
  } catch (...) {
    return failure{errc::job_failed, with_limits(exception_text())};
  }
}

} // namespace troupe
