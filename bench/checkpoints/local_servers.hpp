// Runs the servers of a job in this process and without actors: the decider and the values of each.
// They go through the code that server actors run, one event after the other.
#pragma once

#include "actors/protocol/server/shard.hpp"
#include "actors/tables/table_store.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"
#include "storage/checkpoint_writer.hpp"
#include "storage/manifest.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

namespace troupe::bench {

/// The tables that go by clocks; the others are asp.
enum class bsp_tables { none, all, every_other };

/// Returns a small job whose steps change every kind of state. It has dense tables with each of the
/// optimisers, and two sparse tables of which most partitions have two slabs. It has 60 batches and
/// 3 workers: a bsp clock has 3 slots.
job_spec stateful_job(bsp_tables which);

/// Returns the keys of the sparse tables' rows, ascending.
std::vector<std::uint64_t> row_keys_of_job();

class local_server {
public:
  /// Begins with the initial values.
  local_server(const job_spec& job, shard_id self, const std::vector<partition_id>& partitions);
  /// Begins with a checkpoint's content of its partitions. Throws std::runtime_error.
  local_server(const job_spec& job, shard_id self, const std::vector<partition_image>& restored);

  /// Pushes this server's part of a batch: a function of the batch, the table, and the block or
  /// key, on any number of servers. Throws std::runtime_error if the push is refused.
  void push(batch_id batch);
  /// Returns a cut of this moment. Throws std::runtime_error.
  storage::cut cut(std::uint64_t checkpoint);

  /// Writes this server's values of the job's parameters to their places.
  void export_to(std::vector<std::vector<float>>& parameters) const;

  const shard& decider() const { return decider_; }

private:
  local_server(const job_spec& job, shard_id self, const std::vector<shard_partition>& partitions,
               std::shared_ptr<table_store> values);

  bool owns(partition_id partition) const { return owned_[partition.value]; }
  push_request made_of(batch_id batch) const;
  void add_rows(batch_id batch, table_id table, push_request& to) const;
  /// Carries out the decider's effects. Returns the images of a cut among them.
  std::vector<partition_image> carry_out(shard_effects& effects);

  job_spec job_;
  shard_id self_;
  std::vector<bool> owned_; ///< One for each partition.
  std::shared_ptr<table_store> values_;
  shard decider_;
  std::map<std::uint64_t, push_request> pushed_; ///< By token, until acknowledged.
  std::uint64_t tokens_ = 0;
};

using local_servers = std::vector<local_server>;

local_servers fresh_servers(const job_spec& job, std::uint32_t servers);
/// Restores a checkpoint on any number of servers. Throws std::runtime_error.
local_servers restored_servers(const job_spec& job, std::uint32_t servers,
                               const std::filesystem::path& directory, std::uint64_t checkpoint);

/// Returns the values of each dense table, and those of all keys of each sparse one, as an export
/// does.
std::vector<std::vector<float>> parameters_of(const job_spec& job, const local_servers& servers);

/// Returns all partitions of the servers, ordered by partition.
std::vector<partition_image> images_of(local_servers& servers);

/// One for each server.
using writer_list = std::vector<std::unique_ptr<storage::checkpoint_writer>>;
/// Opens the writers. Throws std::runtime_error.
writer_list open_writers(const std::filesystem::path& directory, std::size_t servers);
/// Writes the servers' cuts of this moment and commits them. Throws std::runtime_error.
storage::manifest commit_cut(const std::filesystem::path& directory, const job_spec& job,
                             std::uint64_t checkpoint, local_servers& servers,
                             const writer_list& writers);

} // namespace troupe::bench
