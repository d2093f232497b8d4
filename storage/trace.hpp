// What a recorded run leaves of each push: when and in which order a chain applied it, and which
// values its gradient was computed from. Order and versions, no gradients.
#pragma once

#include "base/error.hpp"
#include "serialization/ids.hpp"
#include "serialization/job.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::storage {

/// Numbers are file format.
enum class push_event : std::uint32_t {
  applied = 1, ///< The chain took this step.
  read = 2,    ///< It did not, but what the gradient read of it may have been applied by others.
};

/// 64 bytes of a file.
struct trace_entry {
  std::uint64_t time_ns = 0; ///< Boot clock of the server.
  push_event event = push_event::applied;
  std::uint64_t version = 0;      ///< applied: of the chain, with this step. read: 0.
  std::uint64_t base_version = 0; ///< Of the values that the gradient was computed from.
  batch_id batch;
  std::uint64_t clock = 0; ///< The worker's.
  worker_id worker;
  incarnation_id incarnation;
  std::uint16_t slot = 0;  ///< Place among the pushes of this step, ...
  std::uint16_t slots = 1; ///< ... which are so many: of a bsp clock all.

  /// But for the time, which is each server's own.
  bool same_step(const trace_entry& other) const;
  bool operator==(const trace_entry&) const = default;
};

constexpr std::size_t trace_bytes = 64;

/// First in each file: what one start of one server applied of one generation of a chain.
struct trace_header {
  std::uint64_t job = 0; ///< fingerprint(job_spec).
  chain_id chain;
  generation_id generation;
  std::uint64_t base_checkpoint =
    0; ///< Checkpoint that the generation began with; 0: initial values.
  member_id server;
  std::vector<partition_id> partitions; ///< Of the chain.

  bool operator==(const trace_header&) const = default;
};

/// "chain-0-generation-1-server-2-12345.pushes"; the last number is the server's incarnation.
std::string trace_name(const trace_header& header);

/// Makes the directory of a record and writes the job's file.
/// Errors: io_failed, in_use (it holds a record).
result<void> begin_trace(const std::filesystem::path& directory, const job_spec& job);

} // namespace troupe::storage
