// Defines a job: its tables, their consistency and optimisers, and the amount of work. The program
// that starts the job makes it once; every process of the job holds an equal copy.
#pragma once

#include "base/error.hpp"
#include "base/optimizer_kind.hpp"
#include "serialization/consistency.hpp"
#include "serialization/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

// -- limits that validate() and the decoders enforce --
constexpr std::size_t name_length_max = 64;
constexpr std::size_t tables_max = 4096;
constexpr std::size_t rank_max = 8;
constexpr std::uint32_t row_width_max = 4096;
constexpr std::uint64_t elements_max = std::uint64_t{1} << 40; ///< Of all tables together.
constexpr std::uint32_t partitions_max = 4096;
static_assert(servers_max == partitions_max, "each server of a job has a partition");
constexpr std::uint64_t samples_max = 0xffffffff;
constexpr std::uint64_t batches_max = std::uint64_t{1} << 40;
constexpr std::size_t functions_max = 32; ///< Of a job; a hello has a value for each.
constexpr std::size_t function_parameters_max = 64;
constexpr std::uint32_t function_state_max = 64;
constexpr std::size_t own_options_max = 256;
constexpr std::size_t own_option_bytes_max = 1024; ///< Of the name, and of the value.

/// The names of the optimisers, for people.
constexpr const char* optimizer_choices = "sgd, momentum, adagrad, adam, nesterov, adamw or ftrl";

const char* to_string(optimizer_kind kind);
/// Parses one of optimizer_choices: only a program can name a server function.
result<optimizer_kind> parse_optimizer(const std::string& text);

/// The step that a shard takes with each gradient. kernels/optimizer.hpp has the formulas.
struct optimizer_spec {
  optimizer_kind kind = optimizer_kind::sgd;
  float learning_rate = 0.1f; ///< > 0.
  float momentum = 0.9f;      ///< momentum, nesterov: in [0, 1). adam, adamw: beta1.
  float beta2 = 0.999f;       ///< adam, adamw: in [0, 1).
  float epsilon = 1e-8f;      ///< adagrad, adam, adamw: > 0.
  float weight_decay = 0.0f;  ///< >= 0; added to the gradient as weight_decay * w. adamw: each
                              ///< step subtracts rate * weight_decay * w. ftrl: lambda2.
  float clip_value = 0.0f;    ///< Clamps each gradient element to [-x, x]; 0: off.
  float clip_norm = 0.0f;     ///< Scales the whole gradient to at most this L2 norm; 0: off.
  /// Staleness in versions up to which a step has the full rate. A step of a larger staleness s has
  /// the rate times full_rate_staleness / s. 0: each step has the full rate. Not with ftrl, whose
  /// state depends on the rate.
  float full_rate_staleness = 0.0f;
  float l1 = 0.0f;   ///< ftrl: lambda1, >= 0. Larger: more weights that are exactly 0.
  float beta = 1.0f; ///< ftrl: > 0. Larger: shorter first steps.
  /// user: name of a server function of the program, such as "fedbuff/1"; [a-z0-9_./-]+.
  std::string function = {};
  std::vector<float> parameters = {}; ///< user: numbers for the function, at most 64.
  /// user: floats of state for each weight, at most 64. A program leaves it out: it is that of the
  /// function.
  std::uint32_t function_state = 0;

  /// Returns the learning rate of a step whose gradient is this stale, in versions.
  float rate_at(std::uint64_t staleness) const;
  /// Returns the factor of clipping by norm: min(1, clip_norm / norm).
  float clip_scale(float gradient_norm) const;
  /// Returns the name of the kind or, of a server function, its own.
  std::string name() const;
  bool operator==(const optimizer_spec&) const = default;
};

/// Values of a table before its first update; a function of (job seed, table, element).
enum class initializer_kind : std::uint8_t { zeros = 0, uniform = 1, normal = 2 };

struct initializer {
  initializer_kind kind = initializer_kind::zeros;
  float scale = 0.0f;      ///< uniform: values lie in [-scale, scale). normal: standard deviation.
  std::uint32_t zeros = 0; ///< sparse: number of floats, first in each row, that begin as 0.

  bool operator==(const initializer&) const = default;
};

/// A file that has the first values of a table: a .npy, .npz or .safetensors.
struct values_file {
  std::string path;
  std::string array = {}; ///< Name of the array in the file; empty: that of the table.

  bool operator==(const values_file&) const = default;
};

/// Names the file of table_spec::values.
inline values_file from_file(std::string path, std::string array = {}) {
  return {std::move(path), std::move(array)};
}

/// Numbers are wire format.
enum class table_kind : std::uint8_t {
  dense = 0,  ///< An array of a fixed shape.
  sparse = 1, ///< Rows under 64-bit keys; a row's first push initialises it.
};

/// A table of f32.
struct table_spec {
  std::string name;                      ///< Unique in its job; [a-z0-9_.]+, at most 64 characters.
  std::vector<std::uint64_t> shape = {}; ///< dense: row-major; every extent > 0. sparse: empty.
  troupe::consistency sync = {};
  optimizer_spec optimizer = {};
  initializer init = {};
  table_kind kind = table_kind::dense;
  std::uint32_t width = 0; ///< sparse: floats of a row, > 0. dense: 0.
  /// dense: takes no steps, as the layers of a teacher. A trainer gets an empty span as its
  /// gradient, and a worker pulls it once. Its optimizer is not used.
  bool frozen = false;
  /// dense: the file that has the first values, in place of `init`. A program sets it; a job has
  /// their checksum instead.
  std::optional<values_file> values = {};
  /// Checksum of the first values if a file had them, else 0. A program leaves it out.
  std::uint32_t values_checksum = 0;

  bool is_sparse() const { return kind == table_kind::sparse; }
  std::uint64_t size() const; ///< dense: elements, the product of `shape`. sparse: 0.
  bool operator==(const table_spec&) const = default;
};

/// Which failures an acknowledged push survives. Numbers are wire format.
enum class durability_mode : std::uint8_t {
  memory = 0, ///< The loss of at most R - 1 of its chain's replicas at a time.
  log = 1,    ///< The loss of all replicas: the push is in their write-ahead logs.
};

const char* to_string(durability_mode mode);
result<durability_mode> parse_durability(const std::string& text);

/// An option of the program's own, with its value as text.
struct own_option {
  std::string name; ///< "--sigma"
  std::string value;

  bool operator==(const own_option&) const = default;
};

struct job_spec {
  std::string name; ///< At most 64 printable ASCII characters.
  std::uint64_t seed = 1;
  std::uint32_t partitions = 64; ///< Power of two, 1 .. 4096.
  std::uint32_t servers = 1;     ///< At the start of the job; for a job without servers:
                                 ///< `partitions`.
  std::uint32_t replicas = 1;    ///< Servers that hold each partition; at most `servers`.
  std::uint32_t shards = 0;      ///< Units of placement on servers; 0: one for each server.
  std::uint32_t workers = 1;     ///< W: number of workers at the start, and of slots in a bsp
                                 ///< clock.
  /// bsp: workers beyond W, which compute slots that other workers have not finished.
  std::uint32_t backup_workers = 0;
  durability_mode durability = durability_mode::memory;
  /// A keeper of the program has the values. Then there is one server with one partition, all
  /// tables are asp, and their optimisers are not used.
  bool own_store = false;
  /// Each worker has a copy of the values, and mixes it with those of its neighbours. Then the one
  /// server collects the copies, and all tables are dense and asp.
  bool gossip = false;
  std::uint64_t samples = 0; ///< Samples of one epoch.
  /// Samples of one batch; the last batch of an epoch may be smaller.
  std::uint32_t batch_samples = 64;
  std::uint64_t epochs = 1;
  std::vector<table_spec> tables;
  /// Checksum of the files that the program reads (graph::reads). 0: there are none, or the name
  /// identifies the data, or the job is from a time without this checksum.
  std::uint64_t files_checksum = 0;
  std::vector<own_option> own_options = {}; ///< Of the command line that started the job.
  std::uint32_t actors = 0;                 ///< Actors of the program, over all nodes of actors.

  std::uint32_t shard_count() const { return shards == 0 ? servers : shards; }
  std::uint64_t batches_per_epoch() const;
  std::uint64_t batches() const; ///< The batches of all epochs.
  bool operator==(const job_spec&) const = default;
};

/// Describes the first defect of a specification in one line. All functions below, and layout.hpp,
/// require a job that passes. Errors: invalid_argument.
result<void> validate(const job_spec& job);
/// Returns the first defect of an optimiser, "epsilon must be a finite number > 0", or null.
const char* defect_of(const optimizer_spec& x);

/// Returns a 64-bit hash of all that must be equal for two processes, or a checkpoint and a job. It
/// covers the name, seed, partitions, batch size and samples, and whether a keeper has the values.
/// It covers shapes and optimiser kinds of tables, and whether they are frozen. It covers the
/// checksums of values from files, the number of slots of bsp tables, the name, parameters and
/// state of server functions, and the checksum of the files that the program reads. It excludes the
/// number of servers, replicas, shards, epochs, backup workers, asp workers and actors, rates,
/// durability and the program's own options.
std::uint64_t fingerprint(const job_spec& job);
/// Returns whether state with the fingerprint `written` is of `job`. State from a time without the
/// checksum of files is of the job that has this checksum now.
bool is_of(std::uint64_t written, const job_spec& job);

/// Returns whether the mode of some table has a property, such as &mode_traits::stale_steps.
bool any_table(const job_spec& job, bool mode_traits::*property);
/// Returns whether the updates of some table are clocks. Then workers go by clocks, and servers
/// roll back together.
inline bool goes_by_clocks(const job_spec& job) {
  return any_table(job, &mode_traits::clock_updates);
}
/// Returns whether the updates of some tables are clocks, and those of others are not.
bool mixes_clocks(const job_spec& job);
/// Returns whether pulls may wait for other workers.
bool has_waiting_pulls(const job_spec& job);
/// Returns the least number of clocks that a worker may be ahead of the slowest on some table;
/// nullopt: no table has such a bound.
std::optional<std::uint32_t> least_lead(const job_spec& job);
/// Returns whether some table is sparse.
bool any_sparse(const job_spec& job);
/// Returns whether some table is frozen.
bool any_frozen(const job_spec& job);
/// Returns whether the first values of some table are from a file.
bool any_from_file(const job_spec& job);

/// Returns the bsp clock, counted over all epochs, that has `batch` as a slot. Clock t of an epoch
/// has the slots tW .. min(tW + W, batches_per_epoch) - 1 of that epoch.
std::uint64_t bsp_clock(const job_spec& job, batch_id batch);
/// Returns the first batch of a bsp clock, and one past its last.
batch_id bsp_first(const job_spec& job, std::uint64_t clock);
batch_id bsp_end(const job_spec& job, std::uint64_t clock);
/// Returns the number of bsp clocks of the whole job.
std::uint64_t bsp_clock_count(const job_spec& job);

} // namespace troupe
