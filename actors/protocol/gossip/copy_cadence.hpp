// Decides when a gossip peer asks the collector for values to begin with, and when it sends its
// copy. A plain state machine: events and times in.
#pragma once

#include "base/clock.hpp"

#include <algorithm>
#include <chrono>

namespace troupe {

/// Time between two copies for the collector. Longer: a death costs more batches.
constexpr std::chrono::milliseconds copy_interval{500};
/// A peer spends at most one of this many parts of its time on copies ...
constexpr int copy_share = 20;
/// ... but a copy is sent after this time, so that a death does not cost too many batches.
constexpr std::chrono::milliseconds copy_interval_max{800};
/// Time between two questions for values, as an answer may be lost with its lane.
constexpr std::chrono::seconds start_interval{2};

class copy_cadence {
public:
  // -- events --
  /// The lane to a collector is joined. It may be a new one, which knows nothing of this peer.
  void joined(time_point now) {
    ask_due_ = now;
    if (has_values_)
      is_old_ = true;
    due_ = now;
  }
  /// The peer has asked for values.
  void asked(time_point now) { ask_due_ = now + start_interval; }
  /// The peer has values to begin with.
  void begun() { has_values_ = true; }
  /// The copy has changed.
  void changed() { is_old_ = true; }
  /// The worker asks for no further batch. Perhaps it was the last one: the job should not wait.
  void rests(time_point now) { due_ = now; }
  /// The newest copy was sent, and making it took this time.
  void sent(time_point now, std::chrono::nanoseconds cost) {
    is_old_ = false;
    due_ =
      now
      + std::clamp<std::chrono::nanoseconds>(copy_share * cost, copy_interval, copy_interval_max);
  }

  // -- decisions --
  /// Returns whether the peer has to ask for values now.
  bool asks(time_point now) const { return !has_values_ && now >= ask_due_; }
  /// Returns whether the peer has to send its copy now.
  bool sends(time_point now) const { return has_values_ && is_old_ && now >= due_; }

private:
  bool has_values_ = false;
  bool is_old_ = false; ///< The collector has an older copy.
  time_point ask_due_{0};
  time_point due_{0};
};

} // namespace troupe
