#include "actors/graph/options/options.hpp"

#include "actors/graph/options/compression_flags.hpp"
#include "actors/graph/options/recording.hpp"
#include "actors/graph/options/straggler_flags.hpp"
#include "base/command_line.hpp"
#include "base/log.hpp"
#include "base/number_fit.hpp"
#include "base/number_from.hpp"
#include "base/quote.hpp"

#include "CLI/CLI.hpp"
#include "fmt/core.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace troupe {

namespace {

// Returns a CLI11 callback that stores a parsed value or ends the parse with the parser's own line.
template <class Parse, class Store>
auto parsed_by(const char* option, Parse parse, Store store) {
  return [=](const std::string& text) {
    auto value = parse(text);
    if (!value)
      throw CLI::ValidationError{option, value.error().text};
    store(*std::move(value));
  };
}

/// Parses "learners:1". Returns nullopt if it is not a name with a number.
std::optional<named_process> parse_named(const char* option, const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos || colon == 0)
    return std::nullopt;
  const auto index = number_from<std::uint32_t>(text.substr(colon + 1));
  if (!index)
    return std::nullopt;
  return named_process{option, text.substr(0, colon), *index, {}};
}

result<read_target> parse_read_target(const std::string& text) {
  if (text == "head" || text == "any")
    return text == "head" ? read_target::head : read_target::any;
  return {errc::invalid_argument, "reads go to head or any, not to '" + text + "'"};
}

result<consistency> parse_sync(const std::string& text) {
  auto parsed = parse_consistency(text == "allreduce" ? "bsp" : text);
  if (!parsed)
    return {parsed.error().code, parsed.error().text + "; or allreduce, without servers"};
  return parsed;
}

// Checks as CLI::PositiveNumber, but for a float, and with a readable error.
std::string above_zero(const std::string& text) {
  if (const auto fault = size_fault<float>(text); fault && !text.starts_with('-'))
    return *fault;
  const auto value = number_from<double>(text);
  const bool right = value && *value > 0 && std::isfinite(*value);
  return right ? "" : quote(text) + " is not a number above 0";
}

// Checks as CLI::NonNegativeNumber, but for a float, and with a readable error.
std::string zero_or_above(const std::string& text) {
  if (const auto fault = size_fault<float>(text); fault && !text.starts_with('-'))
    return *fault;
  const auto value = number_from<double>(text);
  const bool right = value && *value >= 0 && std::isfinite(*value);
  return right ? "" : quote(text) + " is not a number from 0 on";
}

// Refuses -1, which CLI11 takes for the largest number.
std::string whole_number(const std::string& text) {
  const bool right = number_from<std::uint64_t>(text).has_value();
  return right ? "" : quote(text) + " is not a number from 0 to 2^64 - 1";
}

// Returns a CLI::Range with a shorter text in the help.
template <class Number>
CLI::Validator between(Number least, Number greatest) {
  return CLI::Range(least, greatest).description(fmt::format("{}..{}", least, greatest));
}

// Checks a float from 0 to less than 1.
CLI::Validator below_one() { return number_between(0.0f, 0.999999f); }

} // namespace

std::optional<role> role_named(std::string_view name) {
  for (const auto& row : role_rows)
    if (row.is_started && row.name == name)
      return row.role;
  return std::nullopt;
}

result<process_name> parse_process(const std::string& text) {
  const auto named = parse_named("", text);
  const auto as = named ? role_named(named->node) : std::nullopt;
  if (!as)
    return {errc::invalid_argument,
            quote(text) + " is not ROLE:INDEX, such as worker:1, server:0 or coordinator:0"};
  return process_name{*as, named->index};
}

void add_process(const named_process& what, role as, run_options& options) {
  const process_name who{as, what.index};
  if (what.option == "--here")
    options.here.push_back(who);
  else if (what.option == "--kill")
    options.kills.push_back({who, what.time});
  else
    options.slow_workers.emplace(what.index, what.time);
}

namespace {

/// Takes a process of --here, --kill or --slow, which has a role or the name of a node. `text`:
/// the whole value.
void take_process(const char* option, const std::string& text, const std::string& process,
                  std::chrono::milliseconds time, const char* shape, run_options& options) {
  auto named = parse_named(option, process);
  if (!named)
    throw CLI::ValidationError{option, quote(text) + " is not " + shape};
  named->time = time;
  if (const auto as = role_named(named->node))
    add_process(*named, *as, options);
  else
    options.by_node.push_back(*std::move(named));
}

void take_here(const std::string& text, run_options& options) {
  take_process("--here", text, text, {}, "NAME:INDEX, such as worker:1, server:0 or learners:1",
               options);
}

void take_slow(const std::string& text, run_options& options) {
  constexpr auto shape = "WORKER:MILLISECONDS, such as 2:50 or learners:2:50";
  const auto colon = text.rfind(':');
  const auto pause =
    colon == std::string::npos ? std::nullopt : number_from<std::uint32_t>(text.substr(colon + 1));
  auto worker = text.substr(0, colon);
  if (number_from<std::uint32_t>(worker))
    worker = "worker:" + worker;
  if (!pause
      || (role_named(worker.substr(0, worker.find(':'))).value_or(role::worker) != role::worker))
    throw CLI::ValidationError{"--slow", quote(text) + " is not " + shape};
  take_process("--slow", text, worker, std::chrono::milliseconds{*pause}, shape, options);
}

void take_kill(const std::string& text, run_options& options) {
  constexpr auto shape = "NAME:INDEX@SECONDS, such as worker:1@3 or learners:1@3";
  const auto at = text.find('@');
  const auto seconds =
    at == std::string::npos ? std::nullopt : number_from<double>(text.substr(at + 1));
  if (!seconds || !(*seconds >= 0) || *seconds > 1e7)
    throw CLI::ValidationError{"--kill", quote(text) + " is not " + shape};
  take_process("--kill", text, text.substr(0, at),
               std::chrono::milliseconds{std::llround(*seconds * 1000)}, shape, options);
}

} // namespace

result<checkpoint_period> parse_checkpoint_period(const std::string& text) {
  const auto unit_at = text.find_first_not_of("0123456789.");
  const auto unit = unit_at == std::string::npos ? std::string{} : text.substr(unit_at);
  const auto value = number_from<double>(text.substr(0, unit_at));
  if (value && *value > 0 && *value < 1e9) {
    const auto rounded = [&](double scale) {
      return std::max(std::llround(*value * scale), 1ll); // 0 would mean never.
    };
    if (unit == "ms")
      return checkpoint_period{std::chrono::milliseconds{rounded(1)}, 0};
    if (unit == "s")
      return checkpoint_period{std::chrono::milliseconds{rounded(1000)}, 0};
    if (unit == "m")
      return checkpoint_period{std::chrono::milliseconds{rounded(60'000)}, 0};
    if (unit == "clocks")
      return checkpoint_period{std::chrono::milliseconds{0},
                               static_cast<std::uint64_t>(rounded(1))};
    if (unit == "k") // Which many would read as a thousand.
      return {errc::invalid_argument,
              quote(text) + ": write clocks as " + text.substr(0, unit_at) + "clocks"};
  }
  return {errc::invalid_argument, quote(text)
                                    + " is not a period: a number with ms, s or m (time) or "
                                      "clocks, such as 2s or 200clocks"};
}

result<std::chrono::milliseconds> parse_scrub_interval(const std::string& text) {
  if (text == "off")
    return std::chrono::milliseconds{0};
  const auto period = parse_checkpoint_period(text);
  if (!period || period->clocks > 0)
    return {errc::invalid_argument,
            quote(text) + " is neither a time with ms, s or m, such as 10m, nor off"};
  return period->interval;
}

run_mode run_options::mode() const {
  return asked_mode.value_or(sync.traits().one_memory ? run_mode::threads : run_mode::processes);
}

bool run_options::needs_run_directory() const {
  return mode() == run_mode::processes
         || (mode() == run_mode::threads && import_file && !checkpoint_directory);
}

any_store run_options::store(std::vector<table_spec> tables) const {
  for (auto& table : tables) {
    table.sync = sync;
    table.optimizer = optimizer;
  }
  if (allreduce)
    return all_reduce{std::move(tables), servers.checkpoints};
  if (sync.traits().one_memory)
    return shared_memory{std::move(tables)};
  auto made = servers;
  made.tables = std::move(tables);
  return made;
}

workers run_options::workers_of(std::uint64_t samples, trainer_maker make) const {
  auto made = workers;
  made.samples = samples;
  made.make = std::move(make);
  return made;
}

stage_list run_options::stages() const {
  stage_list made;
  if (workers.per_process > 1)
    made.emplace_back(reducer);
  if (!codec.pushes.empty() || codec.pulls != encoding::f32)
    made.emplace_back(codec);
  return made;
}

static CLI::App* declare_faults(CLI::App& app, run_options& options) {
  auto* faults = app.add_option_group("Fault injection");
  faults->add_option_function<std::vector<std::string>>(
    "--slow",
    [&](const std::vector<std::string>& texts) {
      for (const auto& text : texts)
        take_slow(text, options);
    },
    "WORKER:MS: a straggler, that much slower in each step (repeatable). WORKER: its index, or the "
    "name of its node and the index, such as learners:0:16");
  faults->add_option_function<std::vector<std::string>>(
    "--kill",
    [&](const std::vector<std::string>& texts) {
      for (const auto& text : texts)
        take_kill(text, options);
    },
    "NAME:INDEX@SECONDS: SIGKILL to a process that many seconds into training (repeatable). NAME: "
    "a role (worker, server, coordinator) or a node of the graph");
  faults->add_flag_callback(
    "--no-key-cache", [&] { options.key_cache = false; },
    "Send the keys of sparse rows with each request, also those that the server was sent before");
  return faults;
}

static void declare_shows(CLI::App& cluster, run_options& options) {
  auto* const text =
    cluster.add_flag("--print-graph", options.print_graph,
                     "Print the program's graph and what it promises; run nothing");
  cluster.add_flag("--dot", options.dot, "Print the graph for graphviz; run nothing")
    ->excludes(text);
  cluster.add_flag("--dry-run", options.dry_run,
                   "Check options, files and addresses and print the graph; run nothing");
}

static void declare_encryption(CLI::App& cluster, run_options& options) {
  cluster
    .add_option("--tls", options.tls_directory,
                "Directory of certificates (troupe certs --help): links between hosts are "
                "encrypted, and each end proves its role")
    ->check(path_fault);
  cluster.add_flag("--allow-plaintext-on-network", options.plaintext_on_network,
                   "Let --listen and --join do without --tls: anyone on the network can then "
                   "read and change the job");
}

static void declare_results(CLI::App& files, run_options& options) {
  files.add_option("--report", options.report_file, "Write figures of the run to this JSON file")
    ->check(path_fault);
  files
    .add_option("--events", options.events_file,
                "Append the events of the run to this file, a JSON object a line (default: "
                "events.jsonl in the run directory)")
    ->check(path_fault);
  files
    .add_option("--export", options.export_file,
                "Write the final parameters (.npz, .safetensors, or .npy of one tensor)")
    ->check(path_fault);
  files
    .add_option("--import", options.import_file, "Start from these parameters (.npz, .safetensors)")
    ->check(path_fault);
}

static void declare_logs(CLI::App& files, run_options& options) {
  files
    .add_option("--run-dir", options.run_directory,
                "Directory of this run's logs (default: runs/NAME-TIME-PID)")
    ->check(path_fault)
    ->take_last(); // The launcher appends its own to the command line of its processes.
  files
    .add_option_function<std::string>(
      "--log-level",
      parsed_by("--log-level", parse_log_level, [&](log_level x) { options.log_level = x; }),
      "Least level of a line in the logs: trace, debug, info, warn, error, or off: only the reason "
      "for which a process ends")
    ->default_str("info");
}

static void declare_reading(CLI::App& job, run_options& options) {
  job
    .add_option_function<std::string>(
      "--reads",
      parsed_by("--reads", parse_read_target, [&](read_target x) { options.servers.reads = x; }),
      "asp and bsp with --replicas: the servers that answer pulls; head: the first of each chain, "
      "in one request with a push; any: all replicas in turn, which relieves heads")
    ->default_str("head");
  job
    .add_option("--verify-replicas", options.servers.verify_replicas,
                "With --replicas: compare the values of replicas each N versions, and end the job "
                "if they differ; 0: never. Finds server functions that read more than their "
                "arguments")
    ->check(between(std::uint64_t{0}, std::uint64_t{1'000'000'000}))
    ->capture_default_str();
}

/// Notes which options of a group the command line had.
static void note_options(const CLI::App& group, run_options& options) {
  for (const auto* option : group.get_options())
    if (option->count() > 0)
      options.given.insert(option->get_name());
}

/// Sets the fields that a command line leaves open. A program that makes its own options has full
/// rates.
static void settle_staleness(run_options& options) {
  auto& optimizer = options.optimizer;
  // ftrl's state depends on its rate; a server function gets the staleness, and may use it itself.
  const bool may_lower =
    optimizer.kind != optimizer_kind::ftrl && optimizer.kind != optimizer_kind::user;
  if (options.sync.traits().stale_steps && may_lower && optimizer.full_rate_staleness == 0
      && !options.given.contains("--staleness-lr"))
    optimizer.full_rate_staleness = full_rate_staleness_default;
}

static void declare_limits(CLI::App& job, optimizer_spec& optimizer) {
  job.add_option("--clip-norm", optimizer.clip_norm, "Largest gradient norm; 0: off")
    ->check(zero_or_above)
    ->capture_default_str();
  job.add_option("--clip-value", optimizer.clip_value, "Largest gradient element; 0: off")
    ->check(zero_or_above)
    ->capture_default_str();
  job
    .add_option("--staleness-lr", optimizer.full_rate_staleness,
                "asp, ssp: the staleness up to which an update has the full --lr; above it, the "
                "rate is --lr times this / staleness; 0: off")
    ->check(zero_or_above)
    ->default_str(fmt::format("{}; with ftrl 0", optimizer.full_rate_staleness > 0
                                                   ? optimizer.full_rate_staleness
                                                   : full_rate_staleness_default));
}

void declare(CLI::App& app, run_options& options) {
  auto* job = app.add_option_group("Training");
  job->add_option("--workers", options.workers.count, "Workers of the job")
    ->check(between(1u, 1024u))
    ->capture_default_str();
  job->add_option("--servers", options.servers.count, "Servers of the job")
    ->check(between(1u, 256u))
    ->capture_default_str();
  job
    ->add_option(
      "--replicas", options.servers.replicas,
      "Servers that hold each parameter; all but one of them may die at a time without a loss")
    ->check(between(1u, 16u))
    ->capture_default_str();
  job
    ->add_option("--shards", options.servers.shards,
                 "Parts of the parameters that are placed on servers; more than servers if "
                 "servers are added later (default: one for each server)")
    ->check(between(1u, 4096u));
  job
    ->add_option_function<std::string>(
      "--sync",
      [&](const std::string& text) {
        options.allreduce = text == "allreduce";
        parsed_by("--sync", parse_sync, [&](consistency x) { options.sync = x; })(text);
      },
      "How far workers may drift apart: bsp, ssp:S, asp or hogwild; allreduce: as bsp, but without "
      "servers: workers add up their gradients among themselves")
    ->default_str(options.allreduce ? "allreduce" : to_string(options.sync));
  job
    ->add_option_function<std::string>(
      "--optimizer",
      parsed_by("--optimizer", parse_optimizer,
                [&](optimizer_kind x) { options.optimizer.kind = x; }),
      std::string{"The servers' step: "} + optimizer_choices)
    ->default_str(to_string(options.optimizer.kind));
  job->add_option("--lr", options.optimizer.learning_rate, "Learning rate")
    ->check(CLI::Validator{above_zero, "POSITIVE"})
    ->capture_default_str();
  job->add_option("--momentum", options.optimizer.momentum, "Momentum, or beta1 of adam and adamw")
    ->check(below_one())
    ->capture_default_str();
  job->add_option("--beta2", options.optimizer.beta2, "Decay of adam's and adamw's second moment")
    ->check(below_one())
    ->capture_default_str();
  job
    ->add_option("--epsilon", options.optimizer.epsilon,
                 "Added to the divisor of adagrad, adam and adamw")
    ->check(CLI::Validator{above_zero, "POSITIVE"})
    ->capture_default_str();
  job
    ->add_option("--weight-decay", options.optimizer.weight_decay,
                 "L2 regularisation; adamw: decay of the weights, apart from the gradient")
    ->check(zero_or_above)
    ->capture_default_str();
  job->add_option("--l1", options.optimizer.l1, "ftrl: L1 regularisation, makes weights 0")
    ->check(zero_or_above)
    ->capture_default_str();
  job->add_option("--ftrl-beta", options.optimizer.beta, "ftrl: larger is shorter first steps")
    ->check(CLI::Validator{above_zero, "POSITIVE"})
    ->capture_default_str();
  declare_limits(*job, options.optimizer);
  job->add_option("--batch", options.batch_samples, "Samples of one batch")
    ->check(between(1u, 1u << 20))
    ->capture_default_str();
  job->add_option("--epochs", options.epochs, "Epochs: passes over the training data")
    ->check(between(std::uint64_t{1}, std::uint64_t{1'000'000}))
    ->capture_default_str();
  job
    ->add_option("--seed", options.seed,
                 "Seed of initial values, of the order of samples, and of the times of --simulate")
    ->check(CLI::Validator{whole_number, ""})
    ->capture_default_str();
  job->add_option("--partitions", options.partitions, "Units of placement; a power of two")
    ->check(between(1u, 4096u))
    ->capture_default_str();
  job
    ->add_option("--push-memory", options.workers.push_memory_mib,
                 "MiB of a process's pushes that are not answered yet; later pushes wait")
    ->check(between(1u, 1u << 20))
    ->capture_default_str();
  job
    ->add_option("--apply-batch", options.servers.apply_batch,
                 "asp, ssp: waiting pushes that a server applies in one pass over memory")
    ->check(between(std::size_t{1}, std::size_t{1024}))
    ->capture_default_str();
  job
    ->add_option("--pull-ahead", options.workers.ahead,
                 "asp, hogwild: batches whose values a worker pulls while it computes another")
    ->check(between(0u, 2u))
    ->capture_default_str();
  job
    ->add_option("--workers-per-process", options.workers.per_process,
                 "Workers of a process, which adds up their pushes and pulls once for all")
    ->check(between(1u, workers_per_process_max))
    ->capture_default_str();
  job
    ->add_option_function<std::uint32_t>(
      "--reduce-wait",
      [&](std::uint32_t x) { options.reducer.wait = std::chrono::milliseconds{x}; },
      "With --workers-per-process: milliseconds that a sum waits for more workers; a later push "
      "is in the next sum")
    ->check(between(0u, 5'000u))
    ->default_str("100");
  job->add_flag("--delta-pulls", options.workers.delta_pulls,
                "Pull only the blocks of dense tables that changed since the last pull; costs each "
                "worker one more copy of the values");

  declare_reading(*job, options);
  declare_compression(*job, options);

  auto* cluster = app.add_option_group("Cluster");
  auto* processes = cluster->add_flag_callback(
    "--processes", [&] { options.asked_mode = run_mode::processes; },
    "Every role is a process (the default)");
  auto* threads = cluster
                    ->add_flag_callback(
                      "--threads", [&] { options.asked_mode = run_mode::threads; },
                      "All roles are actors of this one process")
                    ->excludes(processes);
  cluster
    ->add_flag_callback(
      "--simulate", [&] { options.asked_mode = run_mode::simulation; },
      "All roles in one thread and virtual time: steps and messages take times drawn from --seed, "
      "and the run is the same each time")
    ->excludes(processes)
    ->excludes(threads);
  cluster->add_option_function<std::string>(
    "--listen", parsed_by("--listen", parse_endpoint, [&](endpoint x) { options.listen = x; }),
    "ADDRESS:PORT where other hosts join (default: loopback only)");
  cluster->add_option_function<std::string>(
    "--join", parsed_by("--join", parse_endpoint, [&](endpoint x) { options.join = x; }),
    "ADDRESS:PORT of a job on another host; needs --here, the same data, and otherwise the same "
    "options as there; where --sync, --lr and the like differ, those there count");
  cluster
    ->add_option_function<std::vector<std::string>>(
      "--here",
      [&](const std::vector<std::string>& texts) {
        for (const auto& text : texts)
          take_here(text, options);
      },
      "Servers and workers that run on this host, by role or node, such as worker:2,server:1 or "
      "learners:2,model:1 (default: all)")
    ->delimiter(',');
  cluster->add_option_function<std::string>(
    "--coordinator-store",
    parsed_by("--coordinator-store", storage::parse_etcd_url,
              [&](storage::etcd_address x) { options.etcd = std::move(x); }),
    "etcd://HOST:PORT[,HOST:PORT...][/JOB]: the coordinator's state is kept there under the job's "
    "name, and its process leads by a lease (default: beside the checkpoints)");
  cluster
    ->add_option("--standbys", options.standbys,
                 "With --coordinator-store: coordinator processes that wait to take over")
    ->check(between(0u, 8u))
    ->capture_default_str();
  declare_encryption(*cluster, options);
  declare_shows(*cluster, options);

  auto* files = app.add_option_group("Files");
  files
    ->add_option("--checkpoint", options.checkpoint_directory,
                 "Directory of checkpoints (default: in the run directory)")
    ->check(path_fault);
  files
    ->add_option_function<std::string>("--checkpoint-every",
                                       parsed_by("--checkpoint-every", parse_checkpoint_period,
                                                 [&](checkpoint_period x) {
                                                   options.servers.checkpoints.interval =
                                                     x.interval;
                                                   options.servers.checkpoints.clocks = x.clocks;
                                                 }),
                                       "Time (2s, 500ms) or steps (200clocks) between checkpoints")
    ->default_str("2s");
  files->add_option("--checkpoint-keep", options.servers.checkpoints.keep, "Checkpoints to keep")
    ->check(between(1, 1000))
    ->capture_default_str();
  files
    ->add_option_function<std::string>(
      "--checkpoint-scrub",
      parsed_by("--checkpoint-scrub", parse_scrub_interval,
                [&](std::chrono::milliseconds x) { options.servers.scrub_interval = x; }),
      "Time between two checkpoints that are read again, one after the other, so that a damaged "
      "one is known before it is needed; or off")
    ->default_str("10m");
  files
    ->add_option_function<std::string>(
      "--durability",
      parsed_by("--durability", parse_durability,
                [&](durability_mode x) { options.servers.durability = x; }),
      "memory: an acknowledged push survives the end of all but one of the servers that hold it; "
      "log: of all of them, it is also in a write-ahead log of each beside the checkpoints")
    ->default_str(to_string(options.servers.durability));
  files->add_flag("--resume", options.resume,
                  "Continue from the newest good checkpoint of --run-dir or --checkpoint");
  declare_results(*files, options);
  declare_logs(*files, options);
  auto* faults = declare_faults(app, options);
  declare_stragglers(*cluster, *faults, options);
  auto* recording = declare_recording(app, options);
  app.parse_complete_callback(
    [groups = std::array<CLI::App*, 5>{job, cluster, files, recording, faults}, &options] {
      for (const auto* group : groups)
        note_options(*group, options);
      settle_staleness(options);
    });
}

} // namespace troupe
