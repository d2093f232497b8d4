// Declares, parses and checks the command line that every program has.
#pragma once

#include "actors/process_name.hpp"
#include "actors/protocol/coordinator/checkpoint_schedule.hpp"
#include "actors/protocol/coordinator/straggler_detector.hpp"
#include "actors/protocol/worker/router.hpp"
#include "actors/transport/transport.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "serialization/encoding.hpp"
#include "serialization/job.hpp"
#include "storage/etcd_client.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace troupe {

/// A SIGKILL to a process, at time `after` of the training.
struct kill_plan {
  process_name who;
  std::chrono::milliseconds after{0};
};

/// Most workers of a process: this many can die at once without a death being forgotten.
constexpr std::uint32_t workers_per_process_max = 32;

enum class run_mode {
  processes,  ///< Every role is a process.
  threads,    ///< All roles are actors of this process.
  simulation, ///< All roles in one thread and virtual time; see simulation.hpp.
};

struct run_options {
  std::optional<run_mode> asked_mode; ///< See mode().
  std::uint32_t workers = 4;
  std::uint32_t servers = 2;
  std::uint32_t replicas = 1;
  std::uint32_t shards = 0; ///< 0: as many as servers.
  durability_mode durability = durability_mode::memory;
  consistency sync{consistency_mode::asp, 0};
  /// Workers add up their gradients among themselves, without servers; `sync` is then bsp.
  bool allreduce = false;
  optimizer_spec optimizer;
  std::uint32_t batch_samples = 64;
  std::uint64_t epochs = 10;
  std::uint64_t seed = 1;
  std::uint32_t partitions = 64;
  std::uint32_t pull_ahead = 0;                ///< Batches for which a worker pulls values ahead.
  std::uint32_t push_memory_mib = 1024;        ///< For a process's unacknowledged pushes.
  std::size_t apply_batch = 1;                 ///< Waiting pushes that a server applies together.
  bool delta_pulls = false;                    ///< Blocks that did not change are not pulled again.
  read_target reads = read_target::head;       ///< The replicas that answer pulls.
  std::map<std::string, compression> compress; ///< For gradients, by table; "": all others.
  encoding compress_pulls = encoding::f32;     ///< For values that workers pull.

  std::uint32_t workers_per_process = 1;      ///< More share a reducer; see reducer.hpp.
  std::chrono::milliseconds reduce_wait{100}; ///< reducer_options::wait.

  std::uint32_t backup_workers = 0; ///< bsp: workers beyond `workers`.
  /// The strongest measure against a slow worker; nullopt: workers' speeds are not compared.
  std::optional<straggler_measure> stragglers = straggler_measure::evicted;
  double straggler_time_scale = 1.0; ///< Divides the times of the rules for stragglers.

  std::optional<std::filesystem::path> checkpoint_directory;
  checkpoint_options checkpointing;
  std::chrono::milliseconds scrub_interval{600'000}; ///< 0: checkpoints are not read again.
  bool resume = false;

  std::optional<std::filesystem::path> report_file;
  std::optional<std::filesystem::path> events_file; ///< Nullopt: in the run directory.
  std::optional<std::filesystem::path> export_file;
  std::optional<std::filesystem::path> import_file;
  std::optional<std::filesystem::path> record_directory; ///< See recording.hpp.
  std::optional<std::filesystem::path> replay_directory;
  std::optional<double> replay_seconds; ///< Nullopt: the whole trace.
  std::optional<std::filesystem::path> compare_file;
  std::filesystem::path run_directory;                   ///< Empty: runs/NAME-TIME-PID.
  troupe::log_level log_level = troupe::log_level::info; ///< Logs lack lines of lower levels.

  std::map<std::uint32_t, std::chrono::milliseconds> slow_workers;
  std::vector<kill_plan> kills;
  bool key_cache = true; ///< False: links bring the keys of sparse tables each time.

  std::optional<endpoint> listen; ///< Where others may join; nullopt: loopback, any port.
  std::optional<endpoint> join;   ///< The coordinator on another host.
  std::vector<process_name> here; ///< Processes of this host; empty: all.
  std::optional<std::filesystem::path> tls_directory; ///< Certificates; nullopt: no encryption.
  bool plaintext_on_network = false;                  ///< Lets other hosts join without encryption.

  std::optional<storage::etcd_address> etcd; ///< Keeps the coordinator's state; nullopt: on disk.
  std::uint32_t standbys = 0;                ///< Coordinators that wait beside the leader.

  std::set<std::string> given; ///< Names of the options that the command line had.

  /// Returns the mode that was asked for, else the mode that fits the consistency.
  run_mode mode() const;
  /// Returns whether there are logs to keep, or imported parameters and no other place for them.
  bool needs_run_directory() const;
  /// Gives these tables the consistency and optimiser of the command line.
  std::vector<table_spec> configured(std::vector<table_spec> tables) const;
};

/// Declares the options on `app`; they are parsed into `options`, which must outlive it.
/// Texts that cannot be used end the parse with one line.
void declare(CLI::App& app, run_options& options);

/// Checks all options together. Errors: invalid_argument.
result<void> validate(const run_options& options);

/// Checks that the files that are written at the end of the run can be written, and are neither the
/// same nor one of `inputs`. Errors: invalid_argument, io_failed.
result<void> check_outputs(const run_options& options,
                           const std::vector<std::filesystem::path>& inputs = {});

/// Parses "worker:1@3": the process and the seconds.
result<kill_plan> parse_kill(const std::string& text);
/// Parses "worker:1".
result<process_name> parse_process(const std::string& text);
/// A period of time or of clocks: "2s", "500ms", "1m" or "200k" (clocks).
struct checkpoint_period {
  std::chrono::milliseconds interval{0};
  std::uint64_t clocks = 0;
};
result<checkpoint_period> parse_checkpoint_period(const std::string& text);
/// Parses "10m", or "off", which gives 0.
result<std::chrono::milliseconds> parse_scrub_interval(const std::string& text);

} // namespace troupe
