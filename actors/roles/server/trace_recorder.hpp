// Writes the trace of one replica: the pushes that it applies and the versions that their gradients
// were computed from. A replay computes the run again from it (training/replay.hpp).
#pragma once

#include "actors/protocol/server/replica.hpp"
#include "base/clock.hpp"
#include "storage/trace_writer.hpp"

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

namespace troupe {

struct record_options {
  std::filesystem::path directory;                ///< Must exist.
  std::function<void(std::string)> complain = {}; ///< Called when a trace ends early.
};

/// A worker, its incarnation and a batch identify a gradient. A chain that applies it records its
/// base version. A chain may not apply it: it has applied the batch before, or the worker died
/// before its push arrived. Other chains may still apply that gradient. So this chain then records
/// the version that was read for it.
///
/// Cost: 64 bytes a push, in memory until flush().
class trace_recorder {
public:
  trace_recorder(record_options options, storage::trace_header header);
  const storage::trace_header& header() const { return header_; }

  /// Records a step. `version`: the chain's, with this step. `is_clock`: the step is a bsp clock.
  /// A reducer's sum has one base version for all its batches, so jobs with reducers have no trace.
  void applied(time_point now, std::uint64_t version, std::span<const push_request* const> pushes,
               bool is_clock);
  /// Notes that values of `version` were sent to a worker.
  void answered(const step_header& step, std::uint64_t version);
  /// Records a push that was not applied because its batch had been.
  void repeated(time_point now, const step_header& step, std::uint64_t base_version);
  /// Records the reads of all workers but these, because only these can push any more.
  void set_workers(time_point now, const std::vector<clock_entry>& workers);
  /// Writes some KiB into the system's cache, which needs no actor of its own.
  void flush();

private:
  struct open_read {
    step_header step;
    std::uint64_t version = 0;
  };

  void write_read(time_point now, const step_header& step, std::uint64_t base_version);

  record_options options_;
  storage::trace_header header_;
  storage::trace_writer file_;
  std::deque<open_read> reads_; ///< Reads for batches that were not pushed yet.
};

} // namespace troupe
