// Writes down what one replica applies, and what the gradients were computed from, so that the run
// can be computed again (training/replay.hpp).
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
  std::filesystem::path directory;                ///< Exists.
  std::function<void(std::string)> complain = {}; ///< Hears when a record ends early.
};

/// A gradient is known by its worker, that one's incarnation and the batch. A chain that applies it
/// writes its base version down with it. One that does not (the batch was there already, or the
/// worker died before its push arrived) may have been read for it: other chains may apply the
/// gradient, so what was read is written down as well.
///
/// Cost: 64 bytes a push, in memory until flush().
class trace_recorder {
public:
  trace_recorder(record_options options, storage::trace_header header);
  const storage::trace_header& header() const { return header_; }

  /// `version`: with this step. `is_clock`: of bsp. A reducer's sum says one base version
  /// for all of its batches, which is why jobs with reducers are not recorded.
  void applied(time_point now, std::uint64_t version, std::span<const push_request* const> pushes,
               bool is_clock);
  /// Values of this version went to a worker.
  void answered(const step_header& step, std::uint64_t version);
  /// A push was not applied, as its batch had been.
  void repeated(time_point now, const step_header& step, std::uint64_t base_version);
  /// Those that may push; others' pushes will not come any more.
  void set_workers(time_point now, const std::vector<clock_entry>& workers);
  /// Plain writes of some KiB into the system's cache: no actor is needed for them.
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
  std::deque<open_read> reads_; ///< Of batches that were not pushed yet.
};

} // namespace troupe
