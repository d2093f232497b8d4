#include "cli/chaos/chaos_command.hpp"

#include "base/clock.hpp"
#include "base/system/draw_random.hpp"
#include "base/system/signals.hpp"
#include "cli/chaos/checkers.hpp"
#include "cli/chaos/cluster.hpp"
#include "cli/chaos/conductor.hpp"
#include "cli/chaos/damage.hpp"
#include "cli/chaos/event_lines.hpp"
#include "cli/chaos/network.hpp"
#include "cli/chaos/verdict_text.hpp"
#include "serialization/job.hpp"

#include "CLI/CLI.hpp"
#include "fmt/format.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace troupe {

namespace {

using namespace chaos;
namespace fs = std::filesystem;

/// Seconds without faults at the end: the last fault heals while training goes on.
constexpr std::uint32_t quiet_seconds = 10;
/// Least time of a worker for a batch; more if there would be more than `batches_max` batches.
constexpr std::uint64_t step_ms_min = 10;
/// Sums of floats are exact up to 2^24, and a batch adds 2 at most.
constexpr std::uint64_t batches_max = 8'000'000;
/// A run of this many seconds or more has time for faults that last longer than 5 s.
constexpr std::uint32_t long_run_seconds = 40;
constexpr std::uint32_t start_seconds_max = 60;
constexpr double heal_seconds_max = 30;
/// Actors of --graph channel of count_batches.
constexpr std::uint32_t channel_actors = 4;
constexpr unsigned disk_megabytes = 256;
/// Checkpoints that a run keeps if it damages some: they should still be there when it is over.
constexpr std::uint32_t flipped_keep = 100;
constexpr std::uint32_t usual_keep = 5;
constexpr std::chrono::milliseconds look_interval{20};
constexpr double measure_interval = 1;
constexpr double wait_line_interval = 5;

struct chaos_options {
  plan_options faults{.servers = 3, .workers = 4};
  std::optional<std::uint64_t> seed;
  std::uint32_t seconds = 60;
  std::uint32_t replicas = 2;
  std::string sync = "asp";
  std::string graph = "plain";
  std::optional<fs::path> program;
  std::optional<std::uint64_t> minimum;
  double rss_limit_mb = 512;
  double descriptors_limit = 512;
  std::string said; ///< The command line without the seed.

  std::uint64_t faults_of_each() const { return minimum.value_or(1 + seconds / 120); }
};

/// Returns an equivalent command line without the seed.
std::string said_in(const CLI::App& words) {
  std::string all = "troupe " + words.get_name();
  for (const auto* const option : words.get_options()) {
    if (option->count() == 0 || option->get_name() == "--seed")
      continue;
    all += " " + option->get_name();
    if (option->get_items_expected_max() == 0) // A flag.
      continue;
    const auto& value = option->results().front();
    const bool plain = value.find_first_of(" \t\"'$&;()*?\\") == std::string::npos;
    all += plain ? " " + value : " '" + value + "'";
  }
  return all;
}

/// Throws CLI::ValidationError if the options do not fit together.
void check(const chaos_options& options) {
  const auto wrong = [](const char* option, const std::string& why) {
    throw CLI::ValidationError{option, why};
  };
  const bool has_keeper = options.graph == "own-store";
  if (has_keeper && (options.replicas > 1 || options.faults.servers > 1))
    wrong("--graph", "an own store is one server: leave out --servers and --replicas");
  if (has_keeper && options.sync != "asp")
    wrong("--graph", "an own store is asp: leave out --sync");
  if (options.replicas > options.faults.servers)
    wrong("--replicas", fmt::format("{} replicas need as many --servers, not {}", options.replicas,
                                    options.faults.servers));
  const auto sync = parse_consistency(options.sync);
  if (!sync)
    wrong("--sync", sync.error().text);
  if (sync->traits().one_memory)
    wrong("--sync", options.sync + " is one process: " + mode_choices({}, true));
  if (sync->traits().clock_updates && !std::has_single_bit(options.faults.workers))
    wrong("--workers", "a mean of bsp is exact only of 1, 2, 4, 8, ... workers");
  if (kinds_of(options.faults).empty())
    throw CLI::RequiredError{"one of --kill, --stop, --partition, --full-disk, --flip"};
  const std::chrono::seconds asked{options.seconds};
  if (const auto needed = options.faults_of_each() * round_time(options.faults); asked < needed)
    wrong("--seconds", fmt::format("{} s are too short for {} kinds of faults, each {} or more: "
                                   "give --seconds {} or more",
                                   options.seconds, kinds_of(options.faults).size(),
                                   times(options.faults_of_each()),
                                   std::chrono::ceil<std::chrono::seconds>(needed).count()));
}

/// Returns the path of count_batches. Errors: io_failed.
result<fs::path> find_program(const std::optional<fs::path>& asked) {
  const auto here = fs::read_symlink("/proc/self/exe").parent_path();
  const auto program = fs::absolute(asked.value_or(here / "count_batches"));
  if (access(program.c_str(), F_OK) != 0 && !asked)
    return {errc::io_failed,
            "no program count_batches beside " + (here / "troupe").string() + ": give --program"};
  if (access(program.c_str(), X_OK) != 0)
    return {errc::io_failed, "cannot run " + program.string() + ": " + std::strerror(errno)
                               + "; give another --program"};
  return program;
}

/// A temporary folder, removed in the end unless keep() was called.
class run_folder {
public:
  static result<run_folder> make() {
    auto name = (fs::temp_directory_path() / "troupe-chaos-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      return {errc::io_failed, "cannot make " + name};
    return run_folder{name};
  }
  run_folder(run_folder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  run_folder& operator=(run_folder&&) = delete;
  ~run_folder() {
    if (path_.empty())
      return;
    std::error_code none;
    unmount_small_disk(path_ / "checkpoints");
    fs::remove_all(path_, none);
  }

  const fs::path& path() const { return path_; }
  void keep() { path_.clear(); }

private:
  explicit run_folder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

class chaos_run {
public:
  explicit chaos_run(const chaos_options& options) : options_(options), started_at_(steady_now()) {}

  /// `interrupted`: the signal with which the user ended the run.
  result<void> run(std::optional<int>& interrupted);

private:
  double now() const { return std::chrono::duration<double>(steady_now() - started_at_).count(); }
  void say(const std::string& line) const;
  void plan();
  result<void> make_ground(const fs::path& directory);
  result<void> follow(cluster& job, std::optional<int>& interrupted);
  result<void> conclude(run_folder& folder, cluster& job);

  chaos_options options_;
  time_point started_at_;
  std::optional<network> hosts_;
  std::uint64_t step_ms_ = step_ms_min;
  run_facts facts_;
};

void chaos_run::say(const std::string& line) const {
  fmt::print("[{:6.1f} s] {}\n", now(), line);
  std::fflush(stdout);
}

/// Sets the limits, and how much work the run needs.
void chaos_run::plan() {
  facts_.asked = options_.faults;
  facts_.asked.seed = options_.seed.value_or(draw_random() % 1'000'000);
  facts_.replicas = options_.replicas;
  facts_.minimum = options_.faults_of_each();
  facts_.heal_limit = heal_seconds_max;
  facts_.checkpoints_kept = options_.faults.flip ? flipped_keep : usual_keep;
  facts_.rss_limit_mb = options_.rss_limit_mb;
  facts_.descriptors_limit = options_.descriptors_limit;
  const std::uint64_t workers = options_.faults.workers;
  const std::uint64_t trained_ms = 1000ull * (options_.seconds + quiet_seconds);
  facts_.finish_limit = 30 + 2e-3 * static_cast<double>(trained_ms);
  step_ms_ = std::max(step_ms_min, (workers * trained_ms + batches_max - 1) / batches_max);
  facts_.batches = workers * (trained_ms / step_ms_);
}

/// Makes the disk and the network. Requires: this process has one thread.
result<void> chaos_run::make_ground(const fs::path& directory) {
  fs::create_directory(directory / "checkpoints");
  if (options_.faults.full_disk)
    if (auto mounted = mount_small_disk(directory / "checkpoints", disk_megabytes); !mounted)
      return mounted;
  if (!options_.faults.partition)
    return {};
  auto made = network::make();
  if (!made)
    return made.error();
  hosts_ = *made;
  return {};
}

result<void> chaos_run::run(std::optional<int>& interrupted) {
  const auto program = find_program(options_.program);
  if (!program)
    return program.error();
  plan();
  auto folder = run_folder::make();
  if (!folder)
    return folder.error();
  if (auto made = make_ground(folder->path()); !made)
    return made;
  fmt::print("troupe chaos --seed {}: {} batches, {} servers, {} replicas, {} workers, {}\n",
             facts_.asked.seed, facts_.batches, options_.faults.servers, options_.replicas,
             options_.faults.workers, options_.sync);
  std::fflush(stdout);
  const auto& asked = options_.faults;
  cluster job{{*program, folder->path(), asked.servers, options_.replicas, asked.workers,
               asked.actors, options_.sync, options_.graph, facts_.batches, step_ms_,
               facts_.checkpoints_kept},
              hosts_ ? &*hosts_ : nullptr};
  auto followed = follow(job, interrupted);
  job.end();
  if (interrupted)
    return {};
  if (!followed)
    return followed;
  return conclude(*folder, job);
}

/// Follows the job until it has ended or its time is up.
result<void> chaos_run::follow(cluster& job, std::optional<int>& interrupted) {
  signal_watch signals;
  if (auto started = job.start(); !started)
    return started;
  conductor faults{static_cast<double>(options_.seconds), job, facts_,
                   [this](const std::string& line) { say(line); }};
  double measured_at = 0, told_at = 0;
  while (true) {
    if (const auto signal = signals.wait(look_interval); signal && *signal != SIGCHLD) {
      interrupted = signal;
      return {};
    }
    const bool ended = job.ended().has_value(); // First, so that the last lines are read.
    job.read(now(), facts_);
    facts_.exit_status = job.ended();
    facts_.ended_at = now();
    const double limit = faults.is_over() ? facts_.last_fault_ended() + facts_.finish_limit
                                          : start_seconds_max + options_.seconds + heal_seconds_max;
    if (ended || now() > limit) {
      faults.close(facts_.ended_at);
      return {};
    }
    if (faults.is_over() && now() - told_at >= wait_line_interval) {
      told_at = now();
      const auto& job_now = facts_.progress.back();
      say(fmt::format("no more faults, waiting for the end of the job: {} % of the batches done, "
                      "{} of {} members active, {:.0f} s at most",
                      job_now.percent, job_now.active, facts_.members(), limit - now()));
    }
    if (auto done = faults.step(now()); !done)
      return done;
    if (now() - measured_at < measure_interval)
      continue;
    measured_at = now();
    job.measure(facts_);
  }
}

result<void> chaos_run::conclude(run_folder& folder, cluster& job) {
  read_report(job.report_file(), facts_);
  if (auto tried = try_flipped(job.run_directory(), facts_); !tried)
    return tried;
  const auto results = check_all(facts_);
  fmt::print("{}{}", counts_text(facts_), findings_text(results));
  const auto wrong = violated(results);
  if (wrong.empty()) {
    fmt::print("all checks passed\n");
    return {};
  }
  // A small disk vanishes with this process; launchers' output and logs stay.
  const auto kept = folder.path().string();
  folder.keep();
  return {errc::damaged, fmt::format("violated: {}; repeat with {} --seed {}; logs in {}", wrong,
                                     options_.said, facts_.asked.seed, kept)};
}

result<void> run(const chaos_options& options) {
  std::optional<int> interrupted;
  auto done = chaos_run{options}.run(interrupted);
  if (interrupted)
    raise(*interrupted); // Ends this process as if the signal had not been caught.
  return done;
}

/// Is CLI::Range with a readable message; it also refuses nan, which CLI::Range accepts.
CLI::Validator between(double least, double greatest) {
  const auto range = fmt::format("{:.0f}..{:.0f}", least, greatest);
  const auto check = [=](const std::string& text) -> std::string {
    double value = 0;
    const bool right =
      CLI::detail::lexical_cast(text, value) && value >= least && value <= greatest;
    return right ? "" : fmt::format("'{}' is not a number in {}", text, range);
  };
  return CLI::Validator{check, range};
}

void declare_job(CLI::App& words, chaos_options& options) {
  words.add_option("--replicas", options.replicas, "Servers that hold each parameter")
    ->check(between(1, 16))
    ->capture_default_str();
  words.add_option("--servers", options.faults.servers, "Servers")
    ->check(between(1, 64))
    ->capture_default_str();
  words.add_option("--workers", options.faults.workers, "Workers")
    ->check(between(1, 64))
    ->capture_default_str();
  words.add_option("--sync", options.sync, mode_choices({}, true))->capture_default_str();
  words.add_option("--graph", options.graph, "Graph of count_batches")
    ->check(CLI::IsMember(
      std::vector<std::string>{"plain", "stage", "raw", "faults", "own-store", "codec", "channel"}))
    ->capture_default_str();
}

} // namespace

command chaos_command(CLI::App& app) {
  const auto options = std::make_shared<chaos_options>();
  auto& faults = options->faults;
  auto* words = app.add_subcommand(
    "chaos", "Runs a job of real processes under faults, and checks its guarantees");
  words
    ->add_option("--seconds", options->seconds,
                 "How long faults go on; each kind has to come --minimum times")
    ->check(between(1, 100'000))
    ->capture_default_str();
  words->add_option("--seed", options->seed, "Order, victims and length of faults (default: any)")
    ->check(between(0, 1e15));
  words->add_flag("--kill", faults.kill, "SIGKILL to servers, workers, actors and the coordinator");
  words->add_flag(
    "--stop", faults.stop,
    "SIGSTOP to them: shorter and longer than a lease (0.8 s, after which a server without word "
    "from the coordinator answers no reads), longer than silence (1.3 s, then others take its "
    "place), and, from --seconds 40 on, longer than death (5 s, then it is given up)");
  words->add_flag("--partition", faults.partition,
                  "Cut hosts of servers off, both ways and one way; needs root");
  words->add_flag("--full-disk", faults.full_disk, "No room for checkpoints; needs root");
  words->add_flag("--flip", faults.flip,
                  "Flip bits in checkpoints; with --replicas 1 servers are killed then");
  declare_job(*words, *options);
  words
    ->add_option("--program", options->program,
                 "The program count_batches (default: beside this one)")
    ->check(CLI::ExistingFile);
  words
    ->add_option(
      "--minimum", options->minimum,
      "Faults of each kind; with fewer C13 fails (default: 1, and 1 more for each 2 min)")
    ->check(between(0, 1e6));
  words->add_option("--rss-limit", options->rss_limit_mb, "MB that a process may take at its peak")
    ->check(between(1, 1e6))
    ->capture_default_str();
  words
    ->add_option("--descriptors-limit", options->descriptors_limit,
                 "Files and sockets that a process may have open")
    ->check(between(1, 1e6))
    ->capture_default_str();
  words->footer(
    "The checks, with the numbers of docs/figures.md: C1 exactly once, C3 conservation,\n"
    "C8 no bad checkpoint, C9 evictions, C10 liveness, C12 resources, C13 vacuity (faults came),\n"
    "and without a number durability (no acknowledged update is lost) and full disk.\n"
    "C2 and C5 need a simulator (troupe sim); C4, C6, C7 and C11 need jobs of other kinds\n"
    "(bench/faults/fault_matrix.py).");
  words->callback([options, words] {
    options->said = said_in(*words);
    if (options->graph == "own-store") {
      if (words->count("--servers") == 0)
        options->faults.servers = 1;
      if (words->count("--replicas") == 0)
        options->replicas = 1;
    }
    options->faults.actors = options->graph == "channel" ? channel_actors : 0;
    options->faults.long_faults = options->seconds >= long_run_seconds;
    check(*options);
  });
  return {words, [options] { return run(*options); }};
}

} // namespace troupe
