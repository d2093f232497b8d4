// Decides when checkpoints are cut, and follows the one under way. A plain value.
#pragma once

#include "actors/protocol/coordinator/checkpoint_options.hpp"
#include "base/clock.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace troupe {

/// Invariants:
/// (1) numbers only grow, and at most one checkpoint is under way. Held by: assert in begin().
/// (2) a checkpoint is committed only when all shards have delivered their part of this number.
///     Held by: assert in add(); check_parts() in cli/sim/job_checks.cpp.
class checkpoint_schedule {
public:
  /// `last_number`: no number up to this one may be used.
  checkpoint_schedule(const job_spec& job, checkpoint_options options, std::uint64_t last_number);

  /// The progress of the cluster. `clock`: clocks applied by the foremost shard; bsp only.
  struct position {
    std::uint64_t settled = 0;
    std::uint64_t clock = 0;
  };

  /// Measures the pace of clocks; call it often.
  void observe(const position& where, time_point now);
  /// Counts the interval from now on: training began.
  void restart(const position& where, time_point now);
  /// Returns whether the next checkpoint should be cut now. False while one is under way, and if no
  /// batch was settled since the last.
  bool due(const position& where, time_point now) const;
  /// Begins the next checkpoint. In bsp it is cut at a clock far enough ahead that no server passes
  /// it before the desired state arrives; if `aligned`, at a multiple of
  /// checkpoint_options::clocks.
  void begin(const position& where, time_point now, bool aligned);

  /// Return number and clock for the servers' desired state; 0: no checkpoint is asked for.
  std::uint64_t asked() const { return stage_ == stage::cutting ? number_ : 0; }
  std::uint64_t asked_clock() const { return stage_ == stage::cutting ? clock_ : 0; }
  /// Returns the newest number begun.
  std::uint64_t number() const { return number_; }
  std::uint64_t clock() const { return clock_; }
  bool idle() const { return stage_ == stage::idle; }
  bool cutting() const { return stage_ == stage::cutting; }
  bool committing() const { return stage_ == stage::committing; }
  bool overdue(time_point now) const;

  /// Keeps a part of the checkpoint under way. Returns whether it is complete, and is now being
  /// committed.
  bool add(const checkpoint_part& part);
  std::vector<checkpoint_part> parts() const;
  /// Skips numbers up to `number`.
  void skip_to(std::uint64_t number);

  /// Gives up the checkpoint under way; no part of it will be committed.
  void abandon(time_point now);
  /// Abandons it because servers could not cut it: the next bsp clock will be further ahead.
  void fail(time_point now);
  void committed(time_point now);

private:
  enum class stage { idle, cutting, committing };

  std::uint64_t margin() const;
  std::uint64_t target(std::uint64_t clock, bool aligned) const;

  checkpoint_options options_;
  std::uint32_t chains_ = 1;
  std::uint32_t slots_ = 1;
  bool by_clocks_ = false;
  std::uint64_t clocks_total_ = 0;

  stage stage_ = stage::idle;
  std::uint64_t number_ = 0;
  std::uint64_t clock_ = 0;
  position at_;         ///< Position of the last cut.
  time_point since_{0}; ///< Start of the one under way, or end of the last one.
  std::map<shard_id, checkpoint_part> parts_;
  std::uint32_t failures_ = 0; ///< In a row.

  std::uint64_t pace_ = 0; ///< Clocks applied in a recent sample.
  std::uint64_t sample_clock_ = 0;
  time_point sample_at_{0};
};

} // namespace troupe
