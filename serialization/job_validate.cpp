// Checks job specifications. All code that divides, allocates or indexes by a field relies on these
// limits.
#include "serialization/job.hpp"
#include "serialization/layout.hpp"
#include "serialization/wire.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <string_view>

namespace troupe {

namespace {

const std::string unknown_consistency = "consistency must be " + mode_choices();

result<void> refuse(std::string text) { return {errc::invalid_argument, std::move(text)}; }

bool is_table_name(std::string_view name) {
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= name_length_max
         && std::all_of(name.begin(), name.end(), allowed);
}

bool is_job_name(std::string_view name) {
  return name.size() <= name_length_max
         && std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

bool in_unit(float x) { return x >= 0.0f && x < 1.0f; }
bool positive(float x) { return std::isfinite(x) && x > 0.0f; }
bool not_negative(float x) { return std::isfinite(x) && x >= 0.0f; }

bool is_function_name(std::string_view name) {
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/'
           || c == '-';
  };
  return !name.empty() && name.size() <= name_length_max
         && std::all_of(name.begin(), name.end(), allowed);
}

/// Returns the first defect of the fields of a server function, or null.
const char* function_defect(const optimizer_spec& x) {
  if (x.kind != optimizer_kind::user)
    return x.function.empty() && x.parameters.empty() && x.function_state == 0
             ? nullptr
             : "a function needs optimizer.kind user";
  if (!is_function_name(x.function))
    return "the name of its function must be 1 to 64 of a-z, 0-9, '_', '.', '/' and '-'";
  if (x.parameters.size() > function_parameters_max || x.function_state > function_state_max)
    return "its function has more than 64 parameters, or floats of state for a weight";
  if (!std::all_of(x.parameters.begin(), x.parameters.end(),
                   [](float y) { return std::isfinite(y); }))
    return "the parameters of its function must be finite numbers";
  if (x.weight_decay != 0.0f || x.clip_value != 0.0f)
    return "its function gets no weight_decay and no clip_value: make them parameters";
  return nullptr;
}

const char* sparse_defect(const table_spec& x) {
  if (!x.shape.empty())
    return "a sparse table has a width and no shape";
  if (x.width == 0 || x.width > row_width_max)
    return "the width of its rows must be 1 to 4096";
  if (x.sync.traits().one_memory)
    return "it is sparse, and hogwild tables must be dense";
  if (x.frozen)
    return "it is sparse, and frozen tables must be dense";
  if (x.values || x.values_checksum != 0)
    return "it is sparse, and only dense tables begin with the values of a file";
  return nullptr;
}

const char* dense_defect(const table_spec& x) {
  if (x.shape.empty() || x.shape.size() > rank_max)
    return "the shape must have 1 to 8 extents";
  if (std::find(x.shape.begin(), x.shape.end(), 0) != x.shape.end())
    return "every extent of the shape must be > 0";
  if (x.size() > elements_max)
    return "it must have at most 2^40 elements";
  if (x.width != 0)
    return "a dense table has a shape and no width";
  return nullptr;
}

const char* table_defect(const table_spec& x) {
  if (static_cast<std::uint8_t>(x.kind) > static_cast<std::uint8_t>(table_kind::sparse))
    return "its kind must be dense or sparse";
  if (const auto* defect = x.is_sparse() ? sparse_defect(x) : dense_defect(x))
    return defect;
  if (x.sync.mode > consistency_mode_max)
    return unknown_consistency.c_str();
  if (x.sync.staleness_clocks > staleness_clocks_max)
    return "the staleness must be at most 1000000 clocks";
  if (static_cast<std::uint8_t>(x.init.kind) > static_cast<std::uint8_t>(initializer_kind::normal))
    return "the initializer must be zeros, uniform or normal";
  if (!not_negative(x.init.scale))
    return "the initializer's scale must be a finite number >= 0";
  if (x.init.zeros > x.width)
    return "the initializer has more zeros than a row has floats";
  if (x.optimizer.kind == optimizer_kind::user && x.sync.traits().one_memory)
    return "it names a server function, and hogwild has no server: use troupe::servers";
  return defect_of(x.optimizer);
}

result<void> validate_tables(const job_spec& job) {
  if (job.tables.empty() || job.tables.size() > tables_max)
    return refuse("a job must have 1 to 4096 tables, not " + std::to_string(job.tables.size()));
  std::set<std::string_view> names;
  std::uint64_t elements = 0;
  std::size_t in_one_memory = 0, frozen = 0;
  std::set<std::string_view> functions;
  for (const auto& table : job.tables) {
    if (!is_table_name(table.name))
      return refuse("a table's name must be 1 to 64 of a-z, 0-9, '_' and '.': '"
                    + table.name.substr(0, name_length_max) + "'");
    if (!names.insert(table.name).second)
      return refuse("two tables have the name '" + table.name + "'");
    if (const auto* defect = table_defect(table))
      return refuse("table '" + table.name + "': " + defect);
    if (table.optimizer.kind == optimizer_kind::user)
      functions.insert(table.optimizer.function);
    if (functions.size() > functions_max)
      return refuse("the tables of a job must name at most 32 functions");
    elements += table.size();
    in_one_memory += table.sync.traits().one_memory ? 1 : 0;
    frozen += table.frozen ? 1 : 0;
  }
  if (elements > elements_max)
    return refuse("the tables of a job must have at most 2^40 elements, not "
                  + std::to_string(elements));
  if (frozen == job.tables.size())
    return refuse("all tables are frozen, so nothing is trained: leave one of them unfrozen");
  // Tables in one memory need another kind of kv, and a worker has one kv.
  if (in_one_memory != 0 && in_one_memory != job.tables.size())
    return refuse("hogwild must be the consistency of all tables or of none");
  return {};
}

/// Checks that a chain's content fits into one frame, with a margin for unequal shares.
result<void> validate_shares(const job_spec& job) {
  constexpr std::uint64_t share_bytes_max = wire::body_bytes_max / 2;
  std::uint64_t bytes = 0;
  std::uint64_t block_bytes = 0; // The largest block.
  for (const auto& table : job.tables) {
    if (table.sync.traits().one_memory)
      return {}; // All workers share one memory.
    bytes += table.size() * sizeof(float);
    block_bytes = std::max(block_bytes, block_elements(table) * sizeof(float));
  }
  const auto share_bytes = bytes / job.shard_count() + (job.shard_count() > 1 ? block_bytes : 0);
  if (share_bytes > share_bytes_max)
    return refuse("the tables have " + std::to_string(share_bytes) + " bytes for each of "
                  + std::to_string(job.shard_count()) + " shards, at most "
                  + std::to_string(share_bytes_max) + ": use more --servers or --shards");
  return {};
}

result<void> validate_own_store(const job_spec& job) {
  if (job.servers != 1 || job.replicas != 1 || job.shard_count() != 1 || job.partitions != 1)
    return refuse("a job with an own store has one server, one replica, one chain and one "
                  "partition");
  if (job.durability != durability_mode::memory)
    return refuse("an own store keeps no log: its durability is memory");
  for (const auto& table : job.tables)
    if (const auto& mode = table.sync.traits(); mode.pulls_wait() || mode.one_memory)
      return refuse("table '" + table.name + "': the tables of an own store are asp, not "
                    + to_string(table.sync));
  return {};
}

result<void> validate_gossip(const job_spec& job) {
  if (job.servers != 1 || job.replicas != 1 || job.shard_count() != 1)
    return refuse("a gossip job has one server, one replica and one chain");
  if (job.own_store || job.durability != durability_mode::memory)
    return refuse("a gossip job has no own store, and keeps no log");
  if (job.workers < 2 || job.backup_workers > 0)
    return refuse("gossip needs 2 workers or more, and has no backup workers");
  for (const auto& table : job.tables) {
    if (table.is_sparse())
      return refuse("table '" + table.name + "' is sparse, and peers mix dense tables alone");
    if (const auto& mode = table.sync.traits(); mode.pulls_wait() || mode.one_memory)
      return refuse("table '" + table.name + "': the tables of a gossip job are asp, not "
                    + to_string(table.sync));
  }
  return {};
}

} // namespace

const char* defect_of(const optimizer_spec& x) {
  const auto adam = x.kind == optimizer_kind::adam || x.kind == optimizer_kind::adamw;
  const auto momentum = x.kind == optimizer_kind::momentum || x.kind == optimizer_kind::nesterov;
  if (x.kind > optimizer_kind_max)
    return "the kind of its optimizer is unknown";
  if (!positive(x.learning_rate))
    return "learning_rate must be a finite number > 0";
  if ((adam || momentum) && !in_unit(x.momentum))
    return "momentum must be in [0, 1)";
  if (adam && !in_unit(x.beta2))
    return "beta2 must be in [0, 1)";
  if ((adam || x.kind == optimizer_kind::adagrad) && !positive(x.epsilon))
    return "epsilon must be a finite number > 0";
  if (!not_negative(x.weight_decay))
    return "weight_decay must be a finite number >= 0";
  if (!not_negative(x.clip_value) || !not_negative(x.clip_norm))
    return "clip_value and clip_norm must be finite numbers >= 0";
  if (!not_negative(x.full_rate_staleness))
    return "full_rate_staleness must be a finite number >= 0";
  if (const auto* defect = function_defect(x))
    return defect;
  if (x.kind != optimizer_kind::ftrl)
    return nullptr;
  if (!not_negative(x.l1))
    return "l1 must be a finite number >= 0";
  if (!positive(x.beta))
    return "beta must be a finite number > 0";
  if (x.full_rate_staleness > 0)
    return "ftrl's state depends on the learning rate, so staleness cannot lower it";
  return nullptr;
}

static result<void> validate_own_options(const job_spec& job) {
  if (job.own_options.size() > own_options_max)
    return refuse("a program must have at most 256 options of its own");
  for (const auto& option : job.own_options)
    if (option.name.size() > own_option_bytes_max || option.value.size() > own_option_bytes_max)
      return refuse("the name and the value of an own option must have at most 1024 bytes");
  return {};
}

result<void> validate(const job_spec& job) {
  if (!is_job_name(job.name))
    return refuse("a job's name must be at most 64 printable ASCII characters");
  if (!std::has_single_bit(job.partitions) || job.partitions > partitions_max)
    return refuse("partitions must be a power of two from 1 to 4096, not "
                  + std::to_string(job.partitions));
  if (job.servers == 0 || job.servers > job.partitions)
    return refuse("servers must be 1 to " + std::to_string(job.partitions)
                  + " (the number of partitions), not " + std::to_string(job.servers));
  if (job.replicas == 0 || job.replicas > job.servers)
    return refuse("replicas must be 1 to " + std::to_string(job.servers)
                  + " (the number of servers), not " + std::to_string(job.replicas));
  if (job.shards > job.partitions)
    return refuse("shards must be at most " + std::to_string(job.partitions)
                  + " (the number of partitions), not " + std::to_string(job.shards));
  if (job.workers == 0 || job.workers > workers_max)
    return refuse("workers must be 1 to 65536, not " + std::to_string(job.workers));
  if (job.backup_workers > workers_max - job.workers)
    return refuse("workers and backup workers together must be at most 65536");
  if (job.backup_workers > 0 && !goes_by_clocks(job))
    return refuse("backup workers need a bsp table: other tables wait for no worker");
  if (job.actors > actors_max)
    return refuse("a graph must have at most 4096 actors, not " + std::to_string(job.actors));
  // Samples are numbered with 32 bits.
  if (job.samples == 0 || job.samples > samples_max)
    return refuse("samples must be 1 to 2^32 - 1, not " + std::to_string(job.samples));
  if (job.batch_samples == 0)
    return refuse("batch_samples must be at least 1");
  if (job.epochs == 0 || job.epochs > batches_max / job.batches_per_epoch())
    return refuse("passes must be at least 1 and give at most 2^40 batches, not "
                  + std::to_string(job.epochs));
  if (auto valid = validate_tables(job); !valid)
    return valid;
  if (auto valid = validate_own_options(job); !valid)
    return valid;
  if (auto valid = job.own_store ? validate_own_store(job) : result<void>{}; !valid)
    return valid;
  if (auto valid = job.gossip ? validate_gossip(job) : result<void>{}; !valid)
    return valid;
  return validate_shares(job);
}

} // namespace troupe
