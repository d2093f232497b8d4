// Decides when a gossip peer asks the collector for values to begin with, and when it sends its
// copy. A plain state machine: events and times in.
#pragma once

#include "base/clock.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace troupe {

/// Time between two copies for the collector. Longer: a death costs more batches.
constexpr std::chrono::milliseconds copy_interval{500};
/// Copies are made and under way for at most one of this many parts of the time.
constexpr int copy_share = 20;
/// A copy is sent after this time at the latest, so that a death does not cost too many batches.
constexpr std::chrono::seconds copy_interval_max{5};
/// Time between two questions for values, as an answer may be lost with its lane.
constexpr std::chrono::seconds start_interval{2};

class copy_cadence {
public:
  // -- events --
  /// The lane to a collector is joined. It may be a new one, which knows nothing of this peer.
  void joined(time_point now) {
    ask_due_ = now;
    under_way_since_.reset();
    is_old_ = is_urgent_ = true;
  }
  /// The peer has asked for values.
  void asked(time_point now) { ask_due_ = now + start_interval; }
  /// The peer has values to begin with, which are those of the collector.
  void begun() {
    has_values_ = true;
    is_old_ = is_urgent_ = false;
  }
  /// The copy has changed.
  void changed() { is_old_ = true; }
  /// The worker asks for no further batch. Perhaps it was the last one: the job should not wait.
  void rests() { is_urgent_ = true; }
  /// The newest copy was sent. `since`: when its making began.
  void sent(time_point since) {
    under_way_since_ = since;
    is_old_ = is_urgent_ = false;
  }
  /// The collector has the copy.
  void taken(time_point now) {
    const auto since = std::exchange(under_way_since_, std::nullopt);
    if (since)
      due_ =
        *since
        + std::clamp<time_point>(copy_share * (now - *since), copy_interval, copy_interval_max);
  }

  // -- decisions --
  /// Returns whether the peer has to ask for values now.
  bool asks(time_point now) const { return !has_values_ && now >= ask_due_; }
  /// Returns whether the peer has to send its copy now.
  bool sends(time_point now) const {
    if (under_way_since_ && now < *under_way_since_ + copy_interval_max) // Else it was not told.
      return false;
    return has_values_ && is_old_ && (is_urgent_ || now >= due_);
  }

private:
  bool has_values_ = false;
  bool is_old_ = false;    ///< The collector has an older copy.
  bool is_urgent_ = false; ///< The next copy need not wait.
  time_point ask_due_{0};
  time_point due_{0};
  std::optional<time_point> under_way_since_;
};

} // namespace troupe
