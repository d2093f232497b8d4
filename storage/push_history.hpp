// A record of pushes, read back and put together: what every chain applied, in its order, whichever
// servers wrote it down.
#pragma once

#include "base/error.hpp"
#include "serialization/job.hpp"
#include "storage/trace.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::storage {

/// One file.
struct trace_file {
  std::string name; ///< Without its directory.
  trace_header header;
  std::vector<trace_entry> records; ///< In the order in which they were written.
  std::uint64_t size_bytes = 0;
  std::uint64_t torn_bytes = 0; ///< Behind the last whole record: its writer was killed.
};

/// What a chain did from the beginning of a generation on.
struct chain_history {
  chain_id chain;
  generation_id generation;
  std::uint64_t base_checkpoint = 0; ///< As in trace_header.
  std::vector<partition_id> partitions;
  /// By version and slot, none left out; the time is that of the first server that applied it.
  std::vector<trace_entry> applied;
  std::vector<trace_entry> read;
};

struct push_history {
  job_spec job;
  std::vector<chain_history> chains; ///< By chain and generation.
  std::uint64_t files = 0;
  std::uint64_t size_bytes = 0; ///< Of these files.
  std::uint64_t torn_bytes = 0;
};

/// A file that ends within a record ends before it.
/// Errors: io_failed; malformed (not such a file), damaged (a checksum is wrong, and not at the
/// end).
result<trace_file> read_trace_file(const std::filesystem::path& file);

/// Errors: damaged: replicas disagree, or a step is in none of their files.
result<push_history> merge_traces(job_spec job, std::vector<trace_file> files);

/// A file that is empty is passed over.
/// Errors: those of both, and wrong_job: a file is of another job than the others.
result<push_history> read_push_history(const std::filesystem::path& directory);

/// Leaves of each chain the steps before the first one that was taken later than so many seconds
/// after the first step of all. The pushes of the others count as read: another chain may have
/// applied them before.
void cut_after(push_history& recorded, double seconds);

} // namespace troupe::storage
