// Checkpoints of a job without servers: rank 0 writes them while the training goes on.
#pragma once

#include "actors/graph/allreduce/rank_model.hpp"
#include "actors/graph/allreduce/shared_status.hpp"
#include "actors/graph/launch/cluster_file.hpp"
#include "actors/notice_sink.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "storage/checkpoint_writer.hpp"
#include "storage/manifest.hpp"

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// Thread safety: of one thread; writes on another one, one checkpoint at a time.
class rank_checkpoints {
public:
  /// Borrowed: all of it. `clock`: that with which this process begins.
  rank_checkpoints(const cluster_file& cluster, shared_status& board,
                   const std::function<void(const std::string&)>& log, const notice_sink& waits,
                   std::uint64_t clock);

  /// By time or by clocks; never while one is being written.
  bool due(std::uint64_t clock) const;
  /// Of the model as it is now. What went wrong with the one before is logged.
  void begin(const rank_model& model);
  /// The last error; none where what was begun is committed.
  result<void> finish();

private:
  bool is_busy() const;
  result<void> try_to_write(storage::manifest what, std::vector<partition_image> images);
  result<void> write(storage::manifest what, std::vector<partition_image> images);

  const cluster_file& cluster_;
  shared_status& board_;
  const std::function<void(const std::string&)>& log_;
  const notice_sink& waits_;
  std::uint64_t last_;
  time_point written_at_;
  std::uint64_t written_clock_;
  std::unique_ptr<storage::checkpoint_writer> writer_;
  std::future<result<void>> writing_;
};

} // namespace troupe
