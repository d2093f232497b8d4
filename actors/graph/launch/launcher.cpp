#include "actors/graph/launch/launcher.hpp"

#include "actors/detached.hpp"
#include "actors/graph/launch/actor_config.hpp"
#include "actors/graph/launch/job_monitor.hpp"
#include "actors/graph/launch/local_cluster.hpp"
#include "actors/graph/launch/run_setup.hpp"
#include "actors/graph/launch/simulation.hpp"
#include "actors/graph/launch/slow_calls.hpp"
#include "actors/graph/plan.hpp"
#include "actors/graph/processes/host_processes.hpp"
#include "actors/graph/report/missing_members.hpp"
#include "actors/graph/report/run_console.hpp"
#include "actors/graph/report/run_report.hpp"
#include "actors/graph/report/run_result.hpp"
#include "actors/graph/run_failed.hpp"
#include "actors/roles/links/process_links.hpp"
#include "actors/roles/observer/evaluator_actor.hpp"
#include "actors/roles/observer/observer_actor.hpp"
#include "actors/roles/worker/router_actor.hpp"
#include "base/clock.hpp"
#include "base/exception_text.hpp"
#include "base/quote.hpp"
#include "base/system/directory_lock.hpp"
#include "base/system/draw_random.hpp"
#include "base/system/process_memory.hpp"
#include "base/system/resource_limits.hpp"
#include "base/user_code.hpp"
#include "serialization/wire.hpp"
#include "storage/etcd_store.hpp"
#include "storage/job_difference.hpp"

#include "caf/actor_system.hpp"
#include "caf/send.hpp"

#include "fmt/format.h"

#include <poll.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using namespace std::chrono_literals;

/// Holds results from the thread of evaluations, which may outlive the launcher.
struct evaluation_inbox {
  std::mutex mutex;
  std::vector<evaluation_message> fresh;
};

/// Warnings of stages and keepers in this process.
struct warning_inbox {
  std::mutex mutex;
  std::vector<std::string> fresh;
};

class launcher {
public:
  launcher(const plan& what, std::vector<std::string> command, end_watch& end)
      : plan_(what), command_(std::move(command)), job_(what.job),
        statistics_(job_, node_roles_of(plan_)), console_(name_), end_(&end) {
    end.run_begins();
  }

  /// Makes one without screen and signals.
  launcher(const plan& what, log_sink log)
      : plan_(what), job_(what.job), statistics_(job_, node_roles_of(plan_)),
        console_(name_, std::move(log)) {}

  ~launcher() {
    if (evaluator_ && is_simulated())
      caf::anon_send_exit(evaluator_, caf::exit_reason::user_shutdown);
    else if (evaluator_)
      end_evaluator(system_, evaluator_);
    for (const auto& x :
         {caf::actor_cast<caf::actor>(observer_), caf::actor_cast<caf::actor>(store_.values)})
      if (x)
        caf::anon_send_exit(x, caf::exit_reason::user_shutdown);
    // Idle actors have no work left; waiting for them would only risk a hang.
    system_.await_actors_before_shutdown(false);
  }

  int run() {
    required(check_tensor_files(options_, job_), bad_command_line);
    require_outputs(plan_);
    certificates_ = required(load_certificates(options_));
    if (is_simulated())
      simulation_.emplace(system_, job_.seed);
    started_at_ = time();
    try {
      const auto status = train();
      if (end_)
        end_->over(status, std::nullopt);
      return status;
    } catch (const run_failed& why) {
      event(end_of_run(why.status, failure{why.code, why.what()}));
      if (processes_)
        processes_->kill_all();
      if (end_)
        end_->over(why.status, why.what());
      throw;
    }
  }

  /// Runs the job, and returns its report. Throws run_failed.
  report run_and_report() {
    if (run() != EXIT_SUCCESS)
      throw run_failed{*watch_->failure()};
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
  int train() {
    prepare_files();
    statistics_.job_started(started_at_);
    if (!in_one_process())
      start_processes();
    start_actors();
    watch_.emplace(watch_options{!is_main(), !plan_.evaluators.empty(), job_.batches_per_epoch(),
                                 to_string(cluster_.coordinator),
                                 is_main() && !in_one_process() && !options_.etcd},
                   started_at_);
    while (goes_on())
      round();
    return finish();
  }

  void prepare_files() {
    auto made = required(
      prepare_directories(name_, options_, job_, in_one_process() ? given_values{} : plan_.given));
    locks_ = std::move(made.locks);
    if (!in_one_process()) {
      console_.log_in_run_directory(options_, command_);
      console_.say(fmt::format("{}: logs in {}\n", name_, printable(options_.run_directory)));
    }
    required(log_events(options_, command_, console_));
    for (const auto& remark : plan_.remarks)
      note(remark);
    for (const auto& remark : made.remarks)
      note(remark);
  }

  void start_processes() {
    if (!is_main())
      note("connecting to " + to_string(*options_.join) + " ...");
    auto place = required(choose_place(plan_));
    cluster_ = std::move(place.cluster);
    required(check_addresses(certificates_, options_, cluster_));
    for (const auto& remark : place.remarks)
      note(remark);
    if (!is_main()) // Launchers of a job have different numbers.
      self_.index = 1 + static_cast<std::uint32_t>(self_.incarnation.value % 1'000'000);
    required(write_cluster_file(options_.run_directory, cluster_));
    processes_.emplace(options_, command_);
    required(processes_->start(place.listener, time()));
  }

  // -- actors of this process --

  void start_actors() {
    coordinator_connector connect;
    if (in_one_process()) {
      local_.emplace(required(local_cluster::start(
        system_, plan_, options_.checkpoint_directory,
        [inbox = warnings_](log_level level, const std::string& line) {
          if (level < log_level::warn)
            return;
          const std::lock_guard lock{inbox->mutex};
          inbox->fresh.push_back(line);
        },
        simulation_ ? &*simulation_ : nullptr)));
      connect = local_->coordinator();
      store_ = local_->client(system_);
    } else {
      links_.emplace(system_,
                     hello{.version = wire::protocol_version,
                           .job = fingerprint(job_),
                           .secret = cluster_.secret,
                           .from = self_,
                           .probes = probes_of(job_, plan_.functions)},
                     nullptr,
                     transport_options{.arena_bytes = arena_bytes_of(job_),
                                       .tls = certificates_[role::observer]});
      connect =
        links_->to_coordinator(cluster_.coordinator, [mailbox = mailbox_](const failure& why) {
          mailbox->publish({{}, 0, true, why, 0});
        });
      const auto router = spawn_router(system_, job_, links_->to_servers());
      store_ = {router, router};
    }
    observer_ = spawn_observer(system_, self_, fingerprint(job_), mailbox_, store_.views, connect);
    if (is_main())
      evaluator_ = spawn_evaluator(
        system_, job_, store_.values, plan_.evaluators,
        [inbox = evaluations_](evaluation_message x) {
          const std::lock_guard lock{inbox->mutex};
          inbox->fresh.push_back(std::move(x));
        },
        !is_simulated());
  }

  /// Reads the clock of the actors of this process.
  time_point time() { return system_.clock().now().time_since_epoch(); }
  /// Returns false on a host that only joined.
  bool is_main() const { return !options_.join; }
  bool in_one_process() const { return options_.mode() != run_mode::processes; }
  bool is_simulated() const { return options_.mode() == run_mode::simulation; }
  std::size_t threads() const {
    return is_simulated() ? 0 : in_one_process() ? options_.servers.count : 1;
  }

  // -- while it runs --

  void round() {
    if (simulation_)
      simulation_->pass(launcher_interval);
    const auto [signal, slow] = await_news(simulation_ ? 0ms : launcher_interval);
    const auto now = time();
    for (const auto& line : slow)
      event({event_kind::process_waits, {{"text", line}}});
    if (signal && *signal != SIGCHLD)
      carry_out(watch_->stop(*signal, now));
    if (processes_)
      watch_processes(now);
    if (const auto news = mailbox_->latest())
      follow(*news, now);
    take_evaluations(now);
    take_warnings();
    tell_coordinator();
    if (now - shown_at_ >= show_interval) {
      const auto picture = statistics_.snapshot(now);
      if (const auto line = in_one_process() ? std::nullopt : missing_.look(picture, now))
        event({event_kind::process_waits, {{"text", *line}}});
      show(picture);
      shown_at_ = now;
    }
  }

  end_watch::news await_news(std::chrono::milliseconds timeout) {
    if (end_)
      return end_->wait(timeout);
    poll(nullptr, 0, static_cast<int>(timeout.count()));
    return {std::nullopt, slow_.look(open_calls(), steady_now())};
  }

  void show(const progress_snapshot& now) {
    // The final picture waits for the final accuracy.
    if (is_main() && now.phase == job_phase::finished && !watch_->report().done)
      return;
    console_.show(now);
  }

  void carry_out(const watch_decision& what) {
    for (const auto& each : what.events)
      event(each);
    if (what.evaluate)
      caf::anon_send(evaluator_, evaluate_atom_v, *what.evaluate);
    if (what.kill_coordinator && processes_)
      processes_->kill_coordinator(time());
    if (what.wind_down && processes_)
      processes_->wind_down();
  }

  void watch_processes(time_point now) {
    for (const auto& loss : processes_->tick(now)) {
      carry_out(watch_->process_lost(loss));
      statistics_.process_died(loss.member, loss.killed_at, loss.detected_at);
      if (loss.member.role == role::coordinator && options_.etcd)
        mark_dead(loss);
    }
    for (const auto& line : processes_->notices(now))
      event({event_kind::process_waits, {{"text", line}}});
    if (const auto& failed = processes_->failed())
      watch_->give_up(*failed, now);
    if (const auto since = watch_->training_since())
      for (const auto& each : processes_->kill_planned(*since, now))
        event(each);
  }

  /// Ends the lease of a dead coordinator in etcd, so that a standby need not wait for it. Runs on
  /// a separate thread, as etcd may be slow. If it fails, the lease runs out by itself.
  void mark_dead(const supervisor::loss& loss) {
    spawn_detached(
      system_, [etcd = etcd_of(options_, cluster_.checkpoint_directory),
                who = name_in_etcd(cluster_.coordinator, {loss.member.role, loss.member.index},
                                   loss.pid)] { (void)storage::etcd_store::mark_dead(etcd, who); });
  }

  void follow(const job_update& news, time_point now) {
    if (!is_main() && news.desired_state.job != job_spec{} && news.desired_state.job != job_)
      follow_main_host(news.desired_state.job);
    if (!is_main() && !is_directory_checked_ && news.desired_state.directory_mark != 0) {
      is_directory_checked_ = true;
      required(check_shared_directory(options_, cluster_, news.desired_state.directory_mark));
    }
    const auto what = watch_->follow(news, now);
    if (what.coordinator_back)
      statistics_.coordinator_back(now);
    if (!news.stop) // After a stop, processes that leave do as they were told.
      statistics_.observe(news.desired_state, now);
    if (processes_ && !news.stop) {
      for (const auto& line : processes_->follow(news.desired_state, is_main(), now))
        note(line);
      if (news.desired_state.phase != job_phase::gathering)
        for (const auto& each : processes_->kill_hung(news.desired_state.members, now))
          event(each);
    }
    carry_out(what);
  }

  void follow_main_host(const job_spec& job) {
    if (const auto line = overruled(options_, job_, job); !line.empty())
      note(line);
    for (const auto& line : storage::option_differences(job, job_, "the main host's job"))
      note(line);
    job_ = job;
    statistics_.follow(job);
  }

  void take_warnings() {
    std::vector<std::string> fresh;
    {
      const std::lock_guard lock{warnings_->mutex};
      fresh.swap(warnings_->fresh);
    }
    const auto& shown = watch_->failure();
    for (const auto& line : fresh)
      if (!shown || !shown->text.ends_with(line))
        note(line);
  }

  void take_evaluations(time_point now) {
    std::vector<evaluation_message> fresh;
    {
      const std::lock_guard lock{evaluations_->mutex};
      fresh.swap(evaluations_->fresh);
    }
    for (auto& result : fresh) {
      take_evaluation(result, now, now - started_at_, statistics_, console_);
      if (!watch_->on_evaluated(result.failed))
        continue;
      statistics_.job_finished(now);
      if (!end_)
        last_values_ = result.parameters;
      if (result.failed || !options_.export_file)
        continue;
      const auto written =
        export_parameters(*options_.export_file, job_, std::move(result.parameters));
      if (!written)
        watch_->fail(written.error());
    }
  }

  void tell_coordinator() {
    if (watch_->report() == mailbox_->report())
      return;
    mailbox_->update([this](observer_status& report) { report = watch_->report(); });
    caf::anon_send(observer_, tick_atom_v);
  }

  // -- the end --

  bool goes_on() {
    switch (watch_->look(time(), processes_ ? processes_->running() : 0)) {
    case job_monitor::standing::running: return true;
    case job_monitor::standing::over: return false;
    case job_monitor::standing::abandoned: break;
    }
    throw run_failed{*watch_->failure(), watch_->exit_status()};
  }

  int finish() {
    take_warnings();
    statistics_.resident_memory("launcher", peak_rss_bytes());
    if (processes_)
      for (const auto& each : missed_kills(processes_->kills()))
        event(each);
    show(statistics_.snapshot(time()));
    console_.finish();
    if (processes_)
      processes_->kill_all();
    auto status = watch_->exit_status();
    if (const auto& why = watch_->failure())
      console_.complain(why->text);
    if (is_main())
      if (const auto left = leave_report(options_, command_, statistics_, console_); !left) {
        status = EXIT_FAILURE;
        if (!watch_->failure())
          watch_->fail(left.error());
      }
    event(end_of_run(status, watch_->failure()));
    if (!is_main())
      return status;
    constexpr bool is_exported = false; // Only a finished run exports parameters.
    if (status > 128)
      console_.say(
        fmt::format("{}: {}\n", name_, text_of_stop(watch_->checkpoint(), options_, is_exported)));
    console_.say(summary(statistics_));
    if (simulation_)
      tell_of_simulation();
    std::fflush(stdout);
    return status;
  }

  void tell_of_simulation() {
    const auto last = statistics_.snapshot(time());
    const auto seconds = [](time_point x) { return std::chrono::duration<double>(x).count(); };
    console_.say(
      fmt::format("simulated {:.1f} s, staleness mean {:.1f}, max {} versions, in {:.1f} s\n",
                  seconds(last.elapsed), last.staleness_mean, last.staleness_max,
                  seconds(steady_now() - called_at_)));
  }

  void event(const job_event& what) { console_.event(what, time() - started_at_); }
  void note(const std::string& text) { event(note_of(text)); }

  plan plan_;
  run_options& options_ = plan_.options; ///< Directories get their names in a run.
  const std::string& name_ = plan_.program;
  std::vector<std::string> command_;
  job_spec job_;
  run_statistics statistics_;
  run_console console_;
  end_watch* end_ = nullptr; ///< Null in a run inside another program.
  slow_calls slow_;          ///< Of such a run.
  member_id self_{role::observer, 0, {draw_random()}};
  cluster_file cluster_;
  certificates certificates_;
  std::vector<std::vector<float>> last_values_; ///< Of the tables, for such a run.
  std::vector<storage::directory_lock> locks_;
  std::optional<host_processes> processes_; ///< Empty if all roles are in this process.
  std::optional<job_monitor> watch_;
  missing_members missing_;

  std::shared_ptr<observer_mailbox> mailbox_ = std::make_shared<observer_mailbox>();
  std::shared_ptr<evaluation_inbox> evaluations_ = std::make_shared<evaluation_inbox>();
  std::shared_ptr<warning_inbox> warnings_ = std::make_shared<warning_inbox>();
  own_actor_system own_system_ = make_actor_system(threads());
  caf::actor_system& system_ = *own_system_.system;
  std::optional<simulation> simulation_; ///< Only with --simulate.
  std::optional<process_links> links_;
  std::optional<local_cluster> local_;
  store_client store_;
  observer_handle observer_;
  evaluator_handle evaluator_;

  time_point called_at_ = steady_now(); ///< By the machine's clock; the others are by time().
  time_point started_at_{0};
  time_point shown_at_{0};
  bool is_directory_checked_ = false; ///< It was compared with the main host's.
};

} // namespace

int run_launcher(const plan& what, const std::vector<std::string>& command, end_watch& end) {
  launcher now{what, command, end};
  return now.run();
}

result<report> run_inside(const plan& what, log_sink log) {
  try {
    launcher now{what, std::move(log)};
    return now.run_and_report();
  } catch (const run_failed& why) {
    return failure{why.code, why.what()};
  } catch (...) {
    return failure{errc::job_failed, with_limits(exception_text())};
  }
}

} // namespace troupe
