// Reads the files of a trace and merges them into the steps of every chain, in order, from all
// servers' records.
#pragma once

#include "base/error.hpp"
#include "serialization/job.hpp"
#include "storage/trace.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::storage {

/// The content of one file.
struct trace_file {
  std::string name; ///< Without its directory.
  trace_header header;
  std::vector<trace_entry> records; ///< In the order of writing.
  std::uint64_t size_bytes = 0;
  std::uint64_t torn_bytes = 0; ///< Bytes behind the last whole record: its writer was killed.
};

/// The steps of a chain from the beginning of a generation on.
struct chain_history {
  shard_id shard;
  generation_id generation;
  std::uint64_t base_checkpoint = 0; ///< As in trace_header.
  std::vector<partition_id> partitions;
  /// By version and slot, without a gap; the time is from the first server that applied the step.
  std::vector<trace_entry> applied;
  std::vector<trace_entry> read;
};

/// Returns whether a history begins with the first values of the job. Those from files are
/// checkpoint 1 of a run of processes.
bool begins_job(const chain_history& history, const job_spec& job);

struct push_history {
  job_spec job;
  std::vector<chain_history> chains; ///< By chain and generation.
  std::uint64_t files = 0;
  std::uint64_t size_bytes = 0; ///< Size of these files.
  std::uint64_t torn_bytes = 0;
};

/// Reads a file and ignores an incomplete record at its end. Errors: io_failed; malformed (not such
/// a file), damaged (a wrong checksum before the end).
result<trace_file> read_trace_file(const std::filesystem::path& file);

/// Merges the files. Errors: damaged: replicas disagree, or a step is in none of their files.
result<push_history> merge_traces(job_spec job, std::vector<trace_file> files);

/// Reads and merges the files of a directory; skips empty ones. Errors: those of both functions
/// above, and wrong_job: a file is of another job than the others.
result<push_history> read_push_history(const std::filesystem::path& directory);

/// Drops each chain's steps from the first one that was taken more than `seconds` after the first
/// step of all. The dropped pushes count as read: another chain may have applied them before.
void cut_after(push_history& recorded, double seconds);

} // namespace troupe::storage
