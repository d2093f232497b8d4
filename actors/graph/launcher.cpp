#include "actors/graph/launcher.hpp"

#include "actors/clock.hpp"
#include "actors/cluster/supervisor.hpp"
#include "actors/graph/actor_config.hpp"
#include "actors/graph/child.hpp"
#include "actors/graph/cluster_file.hpp"
#include "actors/graph/judge_actor.hpp"
#include "actors/graph/local_cluster.hpp"
#include "actors/graph/observer_actor.hpp"
#include "actors/graph/preparation.hpp"
#include "actors/graph/progress.hpp"
#include "actors/graph/run_report.hpp"
#include "actors/graph/signals.hpp"
#include "actors/links/node.hpp"
#include "actors/member_port.hpp" // peak_rss_bytes
#include "serialization/wire.hpp"
#include "storage/directory_lock.hpp"
#include "storage/tensor_file.hpp"

#include "caf/actor_system.hpp"
#include "caf/send.hpp"

#include "fmt/format.h"

#include <signal.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <stdexcept>

namespace troupe {

namespace {

// How often the main thread looks around when no signal wakes it.
constexpr std::chrono::milliseconds round_interval{20};
// After the order to stop: time for processes to end by themselves.
constexpr std::chrono::seconds end_timeout{5};
// A job on another host that does not answer: when joining it, and later.
constexpr std::chrono::seconds join_timeout{8};
constexpr std::chrono::seconds silence_timeout{60};
// After the user's wish to stop: time for the last checkpoint.
constexpr std::chrono::seconds stop_timeout{30};

/// What ends a run early, with one line for the user.
struct run_failed : std::runtime_error {
  explicit run_failed(const std::string& text, int exit_status = EXIT_FAILURE)
      : std::runtime_error{text}, status(exit_status) {}
  int status;
};

template <class T>
T required(result<T> what) {
  if (!what)
    throw run_failed{what.error().text};
  return *std::move(what);
}

void required(const result<void>& what) {
  if (!what)
    throw run_failed{what.error().text};
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

/// Where the judge's thread leaves what it found; it may outlive the launcher.
struct verdict_inbox {
  std::mutex mutex;
  std::vector<judgement> fresh;
};

class launcher {
public:
  launcher(const std::string& name, const run_options& options, const graph& described,
           std::vector<std::string> command)
      : name_(name), options_(options), graph_(described), command_(std::move(command)),
        job_(make_job(name, described, options)), statistics_(job_),
        display_(stdout, progress_display::is_terminal(stdout)) {}

  ~launcher() {
    for (const auto& x :
         {caf::actor_cast<caf::actor>(observer_), caf::actor_cast<caf::actor>(judge_),
          caf::actor_cast<caf::actor>(values_)})
      if (x)
        caf::anon_send_exit(x, caf::exit_reason::user_shutdown);
    // Idle actors owe nothing to anyone; waiting for them would only risk a hang.
    system_.await_actors_before_shutdown(false);
  }

  int run() {
    required(validate(job_));
    if (is_main())
      required(check_outputs(options_));
    started_at_ = steady_now();
    prepare_files();
    statistics_.job_started(started_at_);
    if (!options_.threads)
      start_processes();
    start_actors();
    while (!over())
      round();
    finish();
    return exit_status_;
  }

private:
  void prepare_files() {
    auto made = required(prepare_directories(name_, options_, job_));
    lock_ = std::move(made.lock);
    if (!options_.threads)
      fmt::print("{}: logs in {}\n", name_, options_.run_directory.string());
    std::fflush(stdout);
    for (const auto& remark : made.remarks)
      event(remark);
  }

  // -- processes --

  std::vector<process_name> processes_here() const {
    if (!options_.here.empty())
      return options_.here;
    std::vector<process_name> all;
    for (std::uint32_t i = 0; i < options_.servers; ++i)
      all.emplace_back(role::server, i);
    for (std::uint32_t i = 0; i < options_.workers; ++i)
      all.emplace_back(role::worker, i);
    return all;
  }

  void start_processes() {
    cluster_.job = job_;
    cluster_.checkpoint_interval = options_.checkpoint_interval;
    cluster_.checkpoint_clocks = options_.checkpoint_clocks;
    cluster_.checkpoint_keep = options_.checkpoint_keep;
    cluster_.resume = options_.resume || options_.import_file;
    cluster_.open_to_others = options_.listen || options_.join;
    int listener = -1;
    if (options_.join) {
      cluster_.coordinator = *options_.join;
      cluster_.listen_host = required(address_towards(*options_.join));
      cluster_.checkpoint_directory = std::filesystem::absolute(
        options_.checkpoint_directory.value_or(options_.run_directory / "checkpoints"));
      // Other launchers of the job have other numbers.
      self_.index = 1 + static_cast<std::uint32_t>(self_.incarnation.value % 1'000'000);
    } else {
      const auto where = options_.listen.value_or(endpoint{"127.0.0.1", 0});
      listener = required(make_listener(where));
      cluster_.coordinator = required(local_endpoint(listener));
      cluster_.listen_host = where.host;
      cluster_.secret = draw_random();
      cluster_.checkpoint_directory = *options_.checkpoint_directory;
      if (!is_loopback(where))
        event("listening on " + to_string(cluster_.coordinator)
              + " without encryption: only for networks that you trust");
    }
    required(write_cluster_file(options_.run_directory, cluster_));
    supervisor_.emplace(
      supervisor_options{.command = command_, .run_directory = options_.run_directory});
    const auto now = steady_now();
    if (!options_.join)
      required(supervisor_->start({role::coordinator, 0}, listener, now));
    for (const auto& who : processes_here())
      required(supervisor_->start(who, -1, now));
  }

  // -- actors of this process --

  void start_actors() {
    coordinator_connector connect;
    if (options_.threads) {
      local_.emplace(required(
        local_cluster::start(system_, job_, graph_, options_, options_.checkpoint_directory, {})));
      connect = local_->coordinator();
      values_ = local_->client(system_);
    } else {
      node_.emplace(system_,
                    hello{wire::protocol_version, fingerprint(job_), cluster_.secret, self_});
      connect = [this](member me) {
        return node_->uplink(cluster_.coordinator, std::move(me), [this](const failure& why) {
          board_->publish({{}, 0, true, why.text});
        });
      };
      values_ = spawn_router(system_, job_, [this](const server_entry& entry) {
        const auto where = parse_endpoint(entry.address);
        return node_->remote(where ? *where : endpoint{},
                             {role::server, entry.server.value, entry.incarnation});
      });
    }
    observer_ = spawn_observer(system_, self_, fingerprint(job_), board_, values_, connect);
    if (is_main())
      judge_ = spawn_judge(system_, job_, values_, graph_.make_evaluator(),
                           [inbox = verdicts_](judgement x) {
                             const std::lock_guard lock{inbox->mutex};
                             inbox->fresh.push_back(std::move(x));
                           });
  }

  /// Not on a host that only joined.
  bool is_main() const { return !options_.join; }

  // -- while it runs --

  void round() {
    const auto signal = signals_.wait(round_interval);
    const auto now = steady_now();
    if (signal && *signal != SIGCHLD)
      user_wants_to_stop(*signal, now);
    if (supervisor_)
      watch_processes(now);
    if (const auto news = board_->latest())
      follow(*news, now);
    take_judgements(now);
    if (supervisor_)
      carry_out_kills(now);
    if (now - shown_at_ >= std::chrono::milliseconds{100}) {
      display_.show(statistics_.snapshot(now));
      shown_at_ = now;
    }
  }

  void user_wants_to_stop(int signal, time_point now) {
    if (stop_asked_at_)
      throw run_failed{"stopped at once", 128 + signal};
    exit_status_ = 128 + signal;
    stop_asked_at_ = now;
    event("stopping after a last checkpoint; once more to stop at once");
    board_->update([](observer_report& report) { report.stop = true; });
    caf::anon_send(observer_, tick_atom_v);
  }

  void watch_processes(time_point now) {
    for (const auto& loss : supervisor_->tick(now)) {
      event(to_string(loss.member.role, loss.member.index) + " lost: " + loss.how);
      if (loss.member.role == role::coordinator)
        coordinator_term_lost_ = last_term_;
      statistics_.process_died(loss.member, loss.killed_at, loss.detected_at);
      board_->update([&](observer_report& report) {
        if (loss.member.role != role::coordinator)
          report.deaths.push_back({loss.member});
        // Those of long ago have been heard; a report should stay small.
        if (report.deaths.size() > 64)
          report.deaths.erase(report.deaths.begin());
      });
      caf::anon_send(observer_, tick_atom_v);
    }
    if (!supervisor_->failed().empty() && failure_.empty()) {
      failure_ = supervisor_->failed();
      board_->update([this](observer_report& report) { report.failed = failure_; });
      caf::anon_send(observer_, tick_atom_v);
      failed_at_ = now;
    }
  }

  void follow(const observer_board::news& news, time_point now) {
    const auto& status = news.orders;
    if (const std::pair latest{news.term, news.sequence}; latest != heard_) {
      heard_ = latest;
      heard_at_ = now;
    }
    last_term_ = std::max(last_term_, news.term);
    if (coordinator_term_lost_ && news.term > *coordinator_term_lost_
        && status.phase != job_phase::gathering) {
      coordinator_term_lost_.reset();
      statistics_.coordinator_back(now);
      event("coordinator back");
    }
    checkpoint_ = std::max(checkpoint_, status.checkpoint);
    show_events(news);
    if (!news.stop) // Processes that left as they were told are no news.
      statistics_.observe(status, now);
    if (status.phase == job_phase::training && !training_since_)
      training_since_ = now;
    if (is_main())
      ask_judge(status);
    if (news.stop && !ended_at_) {
      ended_at_ = now;
      if (!news.failed.empty() && failure_.empty())
        failure_ = news.failed;
      if (supervisor_)
        supervisor_->wind_down();
    }
  }

  void show_events(const observer_board::news& news) {
    if (news.term != events_term_) { // A new coordinator counts from 0.
      events_term_ = news.term;
      events_seen_ = 0;
    }
    const auto& events = news.orders.events;
    const auto first = news.orders.events_total - events.size();
    for (auto i = std::max(first, events_seen_); i < news.orders.events_total; ++i)
      event(events[i - first]);
    events_seen_ = std::max(events_seen_, news.orders.events_total);
  }

  // After each pass, and once at the very end. One at a time; a pass that ends meanwhile is left
  // out.
  void ask_judge(const observer_orders& status) {
    const auto pass = status.batches_done / job_.batches_per_pass();
    const bool end = status.phase == job_phase::finished;
    const bool due = end || (pass > judged_pass_ && graph_.make_evaluator());
    if (judging_ || final_judged_ || !due)
      return;
    judging_ = true;
    judging_final_ = end;
    judged_pass_ = pass;
    caf::anon_send(judge_, judge_atom_v, pass);
  }

  void take_judgements(time_point now) {
    std::vector<judgement> fresh;
    {
      const std::lock_guard lock{verdicts_->mutex};
      fresh.swap(verdicts_->fresh);
    }
    for (auto& verdict : fresh) {
      judging_ = false;
      if (!verdict.failed.empty())
        event("no evaluation: " + verdict.failed);
      if (verdict.found)
        statistics_.evaluated(verdict.number, verdict.found->loss, verdict.found->accuracy,
                              verdict.found->auc, now);
      if (!judging_final_)
        continue;
      final_judged_ = true;
      statistics_.job_finished(now);
      if (verdict.failed.empty())
        export_parameters(verdict);
      else
        failure_ = "trained, but the final parameters were not evaluated: " + verdict.failed;
      board_->update([](observer_report& report) { report.done = true; });
      caf::anon_send(observer_, tick_atom_v);
    }
  }

  void export_parameters(judgement& verdict) {
    if (!options_.export_file)
      return;
    std::vector<storage::tensor> tensors;
    for (std::size_t i = 0; i < job_.tables.size(); ++i)
      tensors.push_back(
        {job_.tables[i].name, job_.tables[i].shape, std::move(verdict.parameters[i])});
    if (auto written = storage::write_tensors(*options_.export_file, tensors); !written)
      failure_ = written.error().text;
  }

  void carry_out_kills(time_point now) {
    if (!training_since_)
      return;
    for (std::size_t i = 0; i < options_.kills.size(); ++i) {
      const auto& plan = options_.kills[i];
      if (killed_.contains(i) || now - *training_since_ < plan.after)
        continue;
      killed_.insert(i);
      event("killing " + to_string(plan.who.first, plan.who.second));
      if (auto done = supervisor_->kill(plan.who, now); !done)
        event(done.error().text);
    }
  }

  // -- the end --

  bool over() {
    const auto now = steady_now();
    if (stop_asked_at_ && now - *stop_asked_at_ > stop_timeout)
      throw run_failed{"no last checkpoint within 30 s; stopped without it"};
    // Without a coordinator nobody orders the end.
    if (failed_at_ && now - *failed_at_ > end_timeout)
      return true;
    if (!ended_at_ && !is_main()
        && now - heard_at_.value_or(started_at_) > (heard_at_ ? silence_timeout : join_timeout))
      throw run_failed{"no job answers at " + to_string(cluster_.coordinator)};
    if (!ended_at_)
      return false;
    return !supervisor_ || supervisor_->running() == 0 || now - *ended_at_ > end_timeout;
  }

  void finish() {
    const auto now = steady_now();
    statistics_.resident_memory("launcher", peak_rss_bytes());
    display_.show(statistics_.snapshot(now));
    display_.finish();
    if (supervisor_)
      supervisor_->kill_all();
    if (!failure_.empty()) {
      fmt::print(stderr, "{}: {}\n", name_, failure_);
      exit_status_ = EXIT_FAILURE;
    }
    if (!is_main())
      return;
    const auto report = statistics_.to_json(joined(command_));
    if (options_.report_file) {
      std::ofstream file{*options_.report_file};
      if (!(file << report << '\n')) {
        fmt::print(stderr, "{}: cannot write {}\n", name_, options_.report_file->string());
        exit_status_ = EXIT_FAILURE;
      }
    }
    if (exit_status_ > 128)
      fmt::print("{}: stopped; {}\n", name_,
                 checkpoint_ == 0 ? "nothing had been saved"
                                  : "continue with --resume --checkpoint "
                                      + options_.checkpoint_directory->string());
    print_summary();
    std::fflush(stdout);
  }

  void print_summary() const {
    const auto last = statistics_.snapshot(steady_now());
    const auto recovered =
      std::count_if(statistics_.recoveries().begin(), statistics_.recoveries().end(),
                    [](const auto& x) { return x.recovered_at.has_value(); });
    if (last.accuracy)
      fmt::print("test accuracy {:.4f} after {:.4g} of {} passes\n", *last.accuracy, last.pass,
                 last.passes);
    if (!statistics_.recoveries().empty())
      fmt::print("{} of {} lost processes recovered\n", recovered, statistics_.recoveries().size());
  }

  void event(const std::string& text) { display_.event(text, steady_now() - started_at_); }

  std::string name_;
  run_options options_;
  const graph& graph_;
  std::vector<std::string> command_;
  job_spec job_;
  run_statistics statistics_;
  progress_display display_;
  member_id self_{role::observer, 0, {draw_random()}};
  cluster_file cluster_;
  signal_watch signals_;
  std::optional<storage::directory_lock> lock_;
  std::optional<supervisor> supervisor_;

  std::shared_ptr<observer_board> board_ = std::make_shared<observer_board>();
  actor_config config_;
  caf::actor_system system_{config_};
  std::optional<node> node_;
  std::optional<local_cluster> local_;
  router_handle values_;
  observer_handle observer_;
  judge_handle judge_;

  time_point started_at_{0};
  time_point shown_at_{0};
  std::optional<time_point> training_since_;
  std::optional<time_point> stop_asked_at_;
  std::optional<time_point> ended_at_;
  std::optional<time_point> failed_at_;
  std::pair<std::uint64_t, std::uint64_t> heard_{0, 0}; // Term and sequence of the latest news.
  std::optional<time_point> heard_at_;
  std::uint64_t last_term_ = 0;
  std::optional<std::uint64_t> coordinator_term_lost_;
  std::uint64_t events_term_ = 0;
  std::uint64_t events_seen_ = 0;
  std::set<std::size_t> killed_;
  bool judging_ = false;
  bool judging_final_ = false;
  bool final_judged_ = false;
  std::uint64_t judged_pass_ = 0;
  std::uint64_t checkpoint_ = 0; ///< Newest committed one.
  std::shared_ptr<verdict_inbox> verdicts_ = std::make_shared<verdict_inbox>();
  std::string failure_;
  int exit_status_ = EXIT_SUCCESS;
};

} // namespace

int run_launcher(const std::string& name, const run_options& options, const graph& described,
                 const std::vector<std::string>& command) {
  try {
    launcher now{name, options, described, command};
    return now.run();
  } catch (const run_failed& why) {
    fmt::print(stderr, "{}: {}\n", name, why.what());
    return why.status;
  }
}

} // namespace troupe
