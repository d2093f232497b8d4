// Defines the options of a run. fields.hpp lists them with their names on the command line.
#pragma once

#include "actors/graph/nodes/nodes.hpp"
#include "actors/graph/nodes/path.hpp"
#include "actors/graph/nodes/store_rules.hpp"
#include "actors/protocol/session/process_plan.hpp"
#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/log_sink.hpp"
#include "serialization/encoding.hpp"
#include "serialization/job.hpp"
#include "storage/etcd_address.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// A process that --here, --kill or --slow names by its node, such as learners:1.
struct named_process {
  std::string option; ///< "--kill".
  std::string node;
  std::uint32_t index = 0;
  std::chrono::milliseconds time{0}; ///< --kill: time of training; --slow: time of a step.

  bool operator==(const named_process&) const = default;
};

/// Most workers of a process: this many can die at once without a death being forgotten.
constexpr std::uint32_t workers_per_process_max = 32;

/// The full_rate_staleness that a command line has in asp and ssp, unless it or the program's
/// defaults have another one. Chosen by bench/training/staleness.py (docs/figures.md).
constexpr float full_rate_staleness_default = 4.0f;

enum class run_mode {
  processes,  ///< Every role is a process.
  threads,    ///< All roles are actors of this process.
  simulation, ///< All roles in one thread and virtual time; see simulation.hpp.
};

/// The values of the command line. describe() takes nodes and stages from it.
struct run_options {
  std::optional<run_mode> asked_mode; ///< See mode().
  // -- for nodes and stages, which describe() takes from here --
  troupe::servers servers;
  troupe::workers workers;
  std::uint32_t actors = 0; ///< Of all nodes; lower() takes them from the graph.
  micro_batching micro;     ///< Of pipeline_of().
  reduce reducer;
  compress codec;
  consistency sync;                                    ///< Consistency of the tables of store().
  optimizer_spec optimizer;                            ///< Optimiser of the tables of store().
  const store_rules* chosen_store = &rules_of_servers; ///< Of store(); see rules().

  // -- of the job --
  std::uint32_t batch_samples = 64; ///< Samples of a batch.
  std::uint64_t epochs = 10;        ///< Passes over the training data.
  std::uint64_t seed = 1;           ///< Seed of initial values and of the order of samples.
  std::uint32_t partitions = 64;    ///< Units of placement; a power of two.

  std::optional<std::string> checkpoint_directory;
  bool resume = false;

  std::optional<std::string> report_file;
  std::optional<std::string> events_file; ///< Nullopt: in the run directory.
  std::optional<std::string> export_file;
  std::optional<std::string> import_file;
  std::optional<std::string> record_directory; ///< See recording.hpp.
  std::optional<std::string> replay_directory;
  std::optional<double> replay_seconds; ///< Nullopt: the whole trace.
  std::optional<std::string> compare_file;
  std::string run_directory;                             ///< Empty: runs/NAME-TIME-PID.
  troupe::log_level log_level = troupe::log_level::info; ///< Logs lack lines of lower levels.

  std::map<std::uint32_t, std::chrono::milliseconds> slow_workers;
  std::vector<kill_plan> kills;
  bool key_cache = true; ///< False: links bring the keys of sparse tables each time.

  std::optional<endpoint> listen;           ///< Where others may join; nullopt: loopback, any port.
  std::optional<endpoint> join;             ///< The coordinator on another host.
  std::optional<port_range> ports;          ///< At which processes listen; nullopt: any.
  std::vector<process_name> here;           ///< Processes of this host; empty: all.
  std::optional<std::string> tls_directory; ///< Certificates; nullopt: no encryption.
  bool plaintext_on_network = false;        ///< Lets other hosts join without encryption.

  std::optional<storage::etcd_address> etcd; ///< Keeps the coordinator's state; nullopt: on disk.
  std::uint32_t standbys = 0;                ///< Coordinators that wait beside the leader.

  bool print_graph = false; ///< Only prints the graph and its promises.
  bool dot = false;         ///< Only prints the graph for graphviz.
  bool dry_run = false;     ///< Only checks options, files and addresses.

  /// Processes that options name by nodes; lower() adds them to `here`, `kills`, `slow_workers`.
  std::vector<named_process> by_node;

  std::set<std::string> given; ///< Names of the options that the command line had.
  std::vector<own_option> own; ///< The program's own options, with the values that they have.

  /// Returns the rules of the chosen store; those of shared memory where `sync` has one memory.
  const store_rules& rules() const;
  /// Returns the mode that was asked for, else the mode that fits the consistency.
  run_mode mode() const;
  /// Returns whether there are logs to keep, or imported parameters and no other place for them.
  bool needs_run_directory() const;

  // -- what describe() adds to its graph --
  /// Returns the store that the command line chose, of these tables with its consistency. Its
  /// optimiser is that of tables for which the program sets none.
  any_store store(std::vector<table_spec> tables) const;
  /// Returns a gossip store of these tables, with the checkpoints of the command line. Its
  /// optimiser is that of tables for which the program sets none.
  gossip gossip_of(std::vector<table_spec> tables, neighbours with, mixing how) const;
  /// Returns the workers of the command line. `samples`: samples of an epoch.
  troupe::workers workers_of(std::uint64_t samples, trainer_maker make) const;
  /// Returns lines of parts: --workers of them, with --micro-batches and --pipeline-order.
  /// `samples`: samples of an epoch.
  pipeline pipeline_of(std::uint64_t samples, std::vector<part_spec> parts) const;
  /// Returns the stages of the command line: a reducer for --workers-per-process, and a codec for
  /// --compress and --compress-pulls.
  stage_list stages() const;
};

/// Checks the options that do not depend on a graph. Errors: invalid_argument.
result<void> validate_without_graph(const run_options& options);
/// Checks all options together, with the fields of the graph's nodes. Errors: invalid_argument.
result<void> validate(const run_options& options);

/// Checks that the files of parameters have known formats, and that the files that a run writes are
/// neither the same nor one of `inputs`. Errors: invalid_argument.
result<void> check_outputs(const run_options& options, const std::vector<std::string>& inputs);
/// Checks that the files that a run writes can be written. Errors: io_failed.
result<void> check_writable(const run_options& options);

/// Returns the role of this name: "worker", "server" or "coordinator".
std::optional<role> role_named(std::string_view name);
/// Adds a process that an option named to `here`, `kills` or `slow_workers`. Requires: --slow has a
/// worker.
void add_process(const named_process& what, role as, run_options& options);

/// Parses "worker:1": a role and the index of its process.
result<process_name> parse_process(const std::string& text);

} // namespace troupe
