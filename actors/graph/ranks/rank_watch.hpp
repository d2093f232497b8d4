// Finds ranks whose heartbeats have stopped.
#pragma once

#include "base/clock.hpp"

#include <chrono>
#include <cstdint>
#include <vector>

namespace troupe {

/// A plain state machine.
///
/// Invariant: a rank is silent only after `silence` in which this launcher itself ran.
class rank_watch {
public:
  /// Silence after which a rank counts as lost. With the patience of hung_processes it is longer
  /// than the patience of its links, so that the other ranks notice first.
  static constexpr std::chrono::seconds silence{10};
  /// Most silence that one look counts: a launcher that stands still reads no heartbeats.
  static constexpr std::chrono::seconds look_max{1};

  struct heartbeat {
    std::uint64_t incarnation = 0; ///< Of the process that writes the line.
    std::uint64_t count = 0;
    bool operator==(const heartbeat&) const = default;
  };

  rank_watch(std::size_t ranks, time_point now) : ranks_(ranks), looked_at_(now) {}

  /// Takes the heartbeats of all ranks, by rank.
  void look(const std::vector<heartbeat>& latest, time_point now);
  bool is_silent(std::size_t rank) const { return ranks_[rank].silent >= silence; }

private:
  struct heard {
    heartbeat last;
    time_point silent{0};
  };
  std::vector<heard> ranks_;
  time_point looked_at_;
};

} // namespace troupe
