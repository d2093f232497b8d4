// One push in a trace: its time, its place in the chain's order, and the version of the values from
// which its gradient was computed. It has order and versions, no gradients.
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

/// The numbers are file format.
enum class push_event : std::uint32_t {
  applied = 1, ///< The chain took this step.
  read = 2,    ///< Not applied here, but its gradient read this chain; other chains may have
               ///< applied it.
};

/// One push; 64 bytes of a file.
struct trace_entry {
  std::uint64_t time_ns = 0; ///< Boot clock of the server.
  push_event event = push_event::applied;
  std::uint64_t version = 0;      ///< applied: version of the chain, with this step. read: 0.
  std::uint64_t base_version = 0; ///< Version of the values from which the gradient was computed.
  batch_id batch;
  std::uint64_t clock = 0; ///< The worker's clock.
  worker_id worker;
  incarnation_id incarnation;
  std::uint16_t slot = 0;  ///< Place among the pushes of this step.
  std::uint16_t slots = 1; ///< Number of pushes of this step; more than one for a bsp clock.

  /// Compares all except the time, which each server takes by its own clock.
  bool same_step(const trace_entry& other) const;
  bool operator==(const trace_entry&) const = default;
};

constexpr std::size_t trace_bytes = 64;

/// First in each file: which start of which server wrote its records, and of which generation of
/// which chain.
struct trace_header {
  std::uint64_t job = 0; ///< fingerprint(job_spec).
  shard_id shard;
  generation_id generation;
  std::uint64_t base_checkpoint =
    0; ///< Checkpoint that the generation began with; 0: initial values.
  member_id server;
  std::vector<partition_id> partitions; ///< Partitions of the chain.

  bool operator==(const trace_header&) const = default;
};

/// Returns "chain-0-generation-1-server-2-12345.pushes"; the last number is the server's
/// incarnation.
std::string trace_name(const trace_header& header);

/// Makes the directory of a trace and writes the job's file. Errors: io_failed, in_use (it holds a
/// trace).
result<void> begin_trace(const std::filesystem::path& directory, const job_spec& job);

} // namespace troupe::storage
