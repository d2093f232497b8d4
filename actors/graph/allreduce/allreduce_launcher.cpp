#include "actors/graph/allreduce/allreduce_launcher.hpp"

#include "actors/graph/allreduce/rank_model.hpp"
#include "actors/graph/allreduce/shared_status.hpp"
#include "actors/graph/launch/cluster_file.hpp"
#include "actors/graph/launch/run_setup.hpp"
#include "actors/graph/plan.hpp"
#include "actors/graph/processes/supervisor.hpp"
#include "actors/graph/report/missing_members.hpp"
#include "actors/graph/report/run_console.hpp"
#include "actors/graph/report/run_result.hpp"
#include "actors/graph/run_failed.hpp"
#include "base/clock.hpp"
#include "base/exception_text.hpp"
#include "base/quote.hpp"
#include "base/system/directory_lock.hpp"
#include "base/system/draw_random.hpp"
#include "base/system/process_memory.hpp"
#include "base/system/resource_limits.hpp"
#include "kernels/executors/team_memory.hpp"

#include "fmt/format.h"

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <utility>

namespace troupe {

namespace {

using namespace std::chrono_literals;

/// A rank whose heartbeat stops for this time is killed. It is longer than the patience of its
/// links, so that the other ranks notice first.
constexpr std::chrono::seconds frozen_max{15};
/// Most silence that one round counts: a launcher or machine that stands still reads no heartbeats.
constexpr std::chrono::seconds round_max{1};
/// Time for processes to exit after their work.
constexpr std::chrono::seconds last_exits_max{5};
/// Time for ranks that have not formed a communicator yet to end after the user's request to stop.
constexpr std::chrono::seconds early_stop_max{2};

class allreduce_launcher {
public:
  allreduce_launcher(const plan& what, std::vector<std::string> command, end_watch& end)
      : plan_(what), command_(std::move(command)), job_(what.job),
        statistics_(job_, node_roles_of(plan_)), console_(name_), end_(end) {
    end_.run_begins();
  }

  int run() {
    required(check_tensor_files(options_, job_), bad_command_line);
    require_outputs(plan_);
    started_at_ = steady_now();
    try {
      const auto status = train();
      end_.over(status, std::nullopt);
      return status;
    } catch (const run_failed& why) {
      event(end_of_run(why.status, failure{why.code, why.what()}));
      if (supervisor_)
        supervisor_->kill_all();
      end_.over(why.status, why.what());
      throw;
    }
  }

private:
  int train() {
    prepare();
    statistics_.without_servers();
    statistics_.job_started(started_at_);
    start();
    while (!over())
      round();
    return finish();
  }

  struct heard {
    std::uint64_t incarnation = 0, heartbeats = 0;
    bool operator==(const heard&) const = default;
  };
  struct heard_from {
    heard last;
    time_point silent{0};
  };

  void prepare() {
    auto made = required(prepare_directories(name_, options_, job_, plan_.given));
    locks_ = std::move(made.locks);
    console_.log_in_run_directory(options_, command_);
    console_.say(fmt::format("{}: logs in {}\n", name_, printable(options_.run_directory)));
    required(log_events(options_, command_, console_));
    for (const auto& remark : plan_.remarks)
      event(note_of(remark));
    for (const auto& remark : made.remarks)
      event(note_of(remark));
    std::size_t parameters = 0;
    for (const auto& table : job_.tables)
      parameters += table.size();
    status_.emplace(
      required(shared_status::create(options_.run_directory, job_.workers, parameters)));
    auto cluster = cluster_file_of(plan_);
    cluster.secret = draw_random();
    cluster.listen_host = "127.0.0.1";
    share_memory();
    if (!memory_)
      open_listeners();
    required(write_cluster_file(options_.run_directory, cluster));
  }

  /// Makes the memory in which the ranks add up. The launcher keeps it for ranks that start again.
  void share_memory() {
    auto made = kernels::team_memory::of_processes(job_.workers, rank_model::sum_floats(job_));
    if (made)
      memory_.emplace(*std::move(made));
    else
      event(note_of("sums go over links: " + with_limits(made.error().text)));
    status_->head().in_memory = memory_.has_value();
  }

  /// The launcher keeps the sockets, so that a rank that starts again has its address.
  void open_listeners() {
    for (std::uint32_t rank = 0; rank < job_.workers; ++rank) {
      listeners_.push_back(required(make_listener({"127.0.0.1", 0})));
      status_->line(rank).port = required(local_endpoint(listeners_.back())).port;
    }
  }

  void start() {
    heard_.resize(job_.workers);
    looked_at_ = steady_now();
    supervisor_.emplace(
      supervisor_options{.command = command_,
                         .run_directory = options_.run_directory,
                         .on_death = {{role::worker, options_.workers.on_death}}});
    for (std::uint32_t rank = 0; rank < job_.workers; ++rank)
      required(supervisor_->start(
        {role::worker, rank}, memory_ ? memory_->descriptor() : listeners_[rank], steady_now()));
  }

  // -- while it runs --

  bool over() const { return over_; }

  void round() {
    const auto [signal, slow] = end_.wait(launcher_interval);
    const auto now = steady_now();
    for (const auto& line : slow)
      event({event_kind::process_waits, {{"text", line}}});
    if (signal && *signal != SIGCHLD)
      stop(*signal);
    watch_processes(now);
    statistics_.observe(picture(), now);
    evaluate(now);
    if (now - shown_at_ >= show_interval) {
      const auto shown = statistics_.snapshot(now);
      if (const auto line = missing_.look(shown, now))
        event({event_kind::process_waits, {{"text", *line}}});
      console_.show(shown);
      shown_at_ = now;
    }
    auto& head = status_->head();
    if (stop_asked_at_)
      look_for_stop(now);
    if (head.done && !leaving_at_) {
      supervisor_->wind_down();
      leaving_at_ = now;
    }
    if (leaving_at_ && last_evaluated_
        && (supervisor_->running() == 0 || now - *leaving_at_ > last_exits_max))
      over_ = true;
  }

  void stop(int signal) {
    if (std::exchange(stop_signal_, signal) != 0) {
      fail("stopped at once");
      over_ = true;
      return;
    }
    stop_asked_at_ = steady_now();
    status_->head().stop = true;
    event({event_kind::stopping, {}});
  }

  void look_for_stop(time_point now) {
    const auto passed = now - *stop_asked_at_;
    const bool done = status_->head().done;
    if (!training_since_ && !done && passed > early_stop_max)
      fail("stopped before the training began");
    else if (passed > last_checkpoint_max)
      fail(done ? "stopped before the last evaluation was done" : no_last_checkpoint);
    over_ = over_ || failure_;
  }

  void watch_processes(time_point now) {
    const auto losses = supervisor_->tick(now);
    for (const auto& loss : losses) {
      event({event_kind::process_ended,
             {{"member", to_string(process_of(loss.member))}, {"reason", loss.how}}});
      statistics_.process_died(loss.member, loss.killed_at, loss.detected_at);
    }
    for (const auto& line : supervisor_->notices(now))
      event({event_kind::process_waits, {{"text", line}}});
    if (!losses.empty()) {
      auto& head = status_->head();
      head.losses.fetch_add(1);
      head.generation.publish(head.losses);
    }
    if (supervisor_->failed()) {
      failure_ = supervisor_->failed();
      over_ = true;
    }
    kill_frozen(now);
    if (!training_since_ && status_->line(0).training)
      training_since_ = now;
    if (training_since_)
      std::erase_if(options_.kills, [&](const kill_plan& plan) {
        if (now - *training_since_ < plan.after)
          return false;
        event({event_kind::kill_injected, {{"member", to_string(plan.who)}}});
        if (auto done = supervisor_->kill(plan.who, now); !done)
          event(note_of(done.error().text));
        return true;
      });
  }

  void kill_frozen(time_point now) {
    const auto passed = std::min<time_point>(now - looked_at_, round_max);
    looked_at_ = now;
    for (const auto& [rank, incarnation] : supervisor_->incarnations()) {
      const auto& line = status_->line(rank.index);
      auto& known = heard_[rank.index];
      const heard newest{line.incarnation, line.heartbeats};
      // A rank that has not begun its line is still loading.
      const bool is_silent = newest == known.last && newest.incarnation == incarnation.value;
      known = {newest, is_silent ? known.silent + passed : time_point{0}};
      if (known.silent < frozen_max)
        continue;
      known.silent = time_point{0};
      event({event_kind::process_hung, {{"member", to_string(rank)}}});
      if (auto done = supervisor_->kill(rank, now); !done)
        event(note_of(done.error().text));
    }
  }

  /// Returns the job's status as a coordinator would report it.
  job_status picture() const {
    const auto& head = status_->head();
    job_status now;
    now.phase = head.done         ? job_phase::finished
                : training_since_ ? job_phase::training
                                  : job_phase::gathering;
    now.checkpoint = head.checkpoint;
    std::uint64_t clock = 0;
    for (std::uint32_t rank = 0; rank < job_.workers; ++rank) {
      const auto& line = status_->line(rank);
      clock = std::max<std::uint64_t>(clock, line.clock);
      member_status status;
      status.member = {role::worker, rank, {line.incarnation}};
      status.state = line.incarnation == 0 ? member_state::absent
                     : head.done           ? member_state::finished
                     : line.training       ? member_state::active
                                           : member_state::joining;
      status.rss_bytes_max = line.rss;
      status.clock = line.clock;
      auto& told = status.worker;
      told.pushes_sent = line.computed;
      told.pushes_acknowledged = line.batches;
      told.pushes_refused = line.unusable;
      told.samples = line.samples;
      told.batches_computed = line.computed;
      told.bytes_sent = told.bytes_received = line.bytes;
      told.wait_us = line.wait_us;
      told.loss_sum = line.loss;
      told.loss_count = line.losses;
      told.notes = line.notes.read();
      now.members.push_back(std::move(status));
    }
    now.batches_done = batches_of(clock);
    return now;
  }

  /// Returns the number of batches in the values at that clock.
  std::uint64_t batches_of(std::uint64_t clock) const {
    return clock >= bsp_clock_count(job_) ? job_.batches() : bsp_first(job_, clock).value;
  }

  // -- evaluating: on its own thread, one pass after the other --

  void evaluate(time_point now) {
    auto& head = status_->head();
    if (evaluating_.valid() && evaluating_.wait_for(0s) == std::future_status::ready)
      take(evaluating_.get(), now);
    if (!evaluating_.valid() && head.offered != head.taken) {
      evaluation_message next;
      next.number = head.epoch;
      evaluating_last_ = head.last;
      auto all = status_->parameters();
      for (const auto& table : job_.tables) {
        const auto own = all.first(static_cast<std::size_t>(table.size()));
        next.parameters.emplace_back(own.begin(), own.end());
        all = all.subspan(own.size());
      }
      head.taken = head.offered.load();
      evaluating_ = starting_threads([&] {
        return std::async(std::launch::async, [this, next = std::move(next)]() mutable {
          return evaluated(std::move(next));
        });
      });
    }
  }

  evaluation_message evaluated(evaluation_message what) {
    evaluate_with(evaluators_, what);
    return what;
  }

  void take(evaluation_message what, time_point now) {
    take_evaluation(what, now, now - started_at_, statistics_, console_);
    if (!evaluating_last_)
      return;
    last_evaluated_ = true;
    statistics_.job_finished(now);
    if (what.failed)
      failure_ = not_evaluated(*what.failed);
    if (what.failed || !options_.export_file)
      return;
    const auto written = export_parameters(*options_.export_file, job_, std::move(what.parameters));
    exported_ = static_cast<bool>(written);
    if (!written)
      failure_ = written.error();
  }

  // -- the end --

  int finish() {
    const auto now = steady_now();
    statistics_.resident_memory("launcher", peak_rss_bytes());
    statistics_.observe(picture(), now);
    statistics_.began_with(batches_of(status_->head().begun));
    for (const auto& each : missed_kills(options_.kills))
      event(each);
    console_.show(statistics_.snapshot(now));
    console_.finish();
    supervisor_->kill_all();
    const auto& head = status_->head();
    if (head.done && head.unsaved && !failure_)
      fail("the last checkpoint cannot be written: see logs/worker-0.log");
    int status = failure_ ? EXIT_FAILURE : EXIT_SUCCESS;
    if (failure_)
      console_.complain(failure_->text);
    if (stop_signal_ != 0)
      status = 128 + stop_signal_;
    if (head.done)
      if (const auto left = leave_report(options_, command_, statistics_, console_); !left) {
        status = EXIT_FAILURE;
        failure_ = failure_ ? failure_ : left.error();
      }
    event(end_of_run(status, failure_));
    if (stop_signal_ != 0)
      console_.say(
        fmt::format("{}: {}\n", name_, text_of_stop(head.checkpoint, options_, exported_)));
    if (head.done)
      console_.say(fmt::format("parameters are equal on all {} workers, checksum {:016x}\n",
                               job_.workers, head.checksum.load()));
    console_.say(summary(statistics_));
    return status;
  }

  void fail(std::string why) { failure_ = failure{errc::job_failed, std::move(why)}; }
  void event(const job_event& what) { console_.event(what, steady_now() - started_at_); }

  plan plan_;
  run_options& options_ = plan_.options; ///< Directories get their names in a run.
  const std::string& name_ = plan_.program;
  std::vector<std::string> command_;
  job_spec job_;
  run_statistics statistics_;
  run_console console_;
  end_watch& end_;
  std::vector<storage::directory_lock> locks_;
  std::optional<shared_status> status_;
  std::optional<kernels::team_memory> memory_;
  std::vector<int> listeners_; ///< By rank; empty where the ranks share memory.
  std::optional<supervisor> supervisor_;
  missing_members missing_;
  evaluators evaluators_{plan_.evaluators};
  std::future<evaluation_message> evaluating_;
  bool evaluating_last_ = false; ///< The running evaluation is the final one.
  std::optional<time_point> training_since_, stop_asked_at_, leaving_at_;
  std::vector<heard_from> heard_; ///< By rank.
  time_point looked_at_{0};
  std::optional<failure> failure_;
  int stop_signal_ = 0;
  bool last_evaluated_ = false;
  bool exported_ = false;
  bool over_ = false;
  time_point started_at_{0};
  time_point shown_at_{0};
};

} // namespace

int run_allreduce_launcher(const plan& what, const std::vector<std::string>& command,
                           end_watch& end) {
  return allreduce_launcher{what, command, end}.run();
}

} // namespace troupe
