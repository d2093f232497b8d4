// Writes the checkpoints of a job without servers, on rank 0, while the training goes on.
#pragma once

#include "base/notice.hpp"
#include "actors/graph/ranks/rank_model.hpp"
#include "actors/graph/ranks/shared_status.hpp"
#include "actors/graph/launch/cluster_file.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "storage/checkpoint_writer.hpp"
#include "storage/manifest.hpp"

#include <cstdint>
#include <future>
#include <memory>
#include <vector>

namespace troupe {

/// Writes on a thread of its own, one checkpoint at a time. Thread safety: for one thread.
class rank_checkpoints {
public:
  /// Borrowed: all references. `clock`: the clock at which this process begins.
  rank_checkpoints(const cluster_file& cluster, const checkpoint_options& period,
                   shared_status& status, const log_sink& log, const notice_sink& waits,
                   std::uint64_t clock);

  /// Returns whether a checkpoint is due, by time or by clocks; false while one is being written.
  bool due(std::uint64_t clock) const;
  /// Begins a checkpoint of the model as it is now. Logs the error of the previous one, if any.
  void begin(const rank_model& model);
  /// Waits for the end of a checkpoint that was begun, and returns its error, if any.
  result<void> finish();

private:
  bool is_busy() const;
  result<void> write(storage::manifest what, std::vector<partition_image> images);

  const cluster_file& cluster_;
  const checkpoint_options& period_;
  shared_status& status_;
  const log_sink& log_;
  const notice_sink& waits_;
  std::uint64_t last_;
  time_point written_at_;
  std::uint64_t written_clock_;
  std::unique_ptr<storage::checkpoint_writer> writer_;
  std::future<result<void>> writing_;
};

} // namespace troupe
