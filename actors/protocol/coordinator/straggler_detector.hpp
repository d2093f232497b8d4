// Detects stragglers, and decides the measures against each. A plain state machine: progress of the
// workers and time in, events out. It compares workers with each other, never with a worker's
// clock. It takes no measures while the whole cluster or the detector itself is slow. Measures grow
// by degrees, within a budget, and always end.
#pragma once

#include "actors/protocol/coordinator/straggler_measure.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "serialization/ids.hpp"
#include "serialization/job_event.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The numbers of the rules. "Step": one batch of a worker. "Typical step": the median number of
/// samples in a step, over all workers, so that a worker with more data in a step is not slow for
/// it.
struct straggler_options {
  // -- slow workers --
  /// Steps of a window, whose median time per sample is a worker's pace. More: calmer and later.
  std::uint32_t window_steps = 20;
  /// A window ends after this time, or after the time of window_time_steps steps at pace m if that
  /// is longer, with the steps it has, at least one. So a worker that is 5 times slower than
  /// others, at 1 s a step, is evicted within 60 s; with 20 steps of 5 s it would take 10 min.
  std::chrono::milliseconds window_time{5000};
  double window_time_steps = 5.0;
  /// A worker is slow beyond max(slow_ratio * m, m + slow_deviations * d), where m is the median of
  /// all paces and d the median of their distances from it. Smaller: more false alarms.
  double slow_ratio = 2.0;
  double slow_deviations = 6.0;
  /// A typical step must also take the worker longer, by more than this, than at pace m. Below, a
  /// measure would gain too little.
  std::chrono::milliseconds slow_excess{50};
  /// Windows in a row that must be slow before a measure is taken.
  std::uint32_t slow_windows = 3;
  /// With fewer paces to compare, no worker counts as slow.
  std::uint32_t reporting_min = 5;

  // -- stalled workers --
  /// A worker is stalled when it has finished no step for longer than max(silence, silence_steps
  /// steps of its size at pace m). An event tells of it.
  std::chrono::milliseconds silence{10'000};
  double silence_steps = 5.0;
  /// The limit before its first step, and before any pace is known: models are built, data is read.
  std::chrono::milliseconds first_step{120'000};
  /// A stalled worker is evicted after stalled_ratio times the limit. Must exceed every pause of a
  /// healthy worker.
  double stalled_ratio = 2.0;

  // -- slow cluster: the brake --
  /// The brake is on if m exceeds its long-run mean by more than this factor.
  double brake_rise = 1.5;
  std::chrono::milliseconds long_run{600'000};
  /// The brake is on if more than this share of the workers is slow or stalled. One worker is never
  /// more.
  double brake_share = 0.2;
  /// The brake stays on for this time after its last cause.
  std::chrono::milliseconds brake_time{10'000};

  // -- measures --
  /// The strongest measure that is used.
  straggler_measure strongest = straggler_measure::evicted;
  /// Least time between two measures against a worker, so that the first can help.
  std::chrono::milliseconds force_interval{5000};
  /// A worker has its full duty back after this time without a slow window. Longer than a flapping
  /// worker's good times: it is then evicted after a few bad ones.
  std::chrono::milliseconds recovery{60'000};

  // -- budget --
  /// At most max(1, out_share * workers known) are evicted at a time.
  double out_share = 0.1;
  /// At least this many workers work.
  std::uint32_t workers_min = 1;
  /// At most one worker is evicted in this time.
  std::chrono::milliseconds eviction_interval{10'000};

  // -- return --
  /// An evicted worker stays out for this times its evictions so far, at most probation_max.
  std::chrono::milliseconds probation{30'000};
  std::chrono::milliseconds probation_max{300'000};
  /// After this time without a slow window half of its evictions are forgotten.
  std::chrono::milliseconds healthy_time{600'000};
  /// After host_evictions evictions from one host within host_memory, no worker of it comes back
  /// before host_hold is over.
  std::uint32_t host_evictions = 3;
  std::chrono::milliseconds host_memory{3'600'000};
  std::chrono::milliseconds host_hold{1'800'000};

  // -- the detector itself --
  /// Time between two rounds.
  std::chrono::milliseconds round{1000};
  /// A round that comes after more than this times `round` is late.
  double late_ratio = 2.0;
  /// `silence` and `first_step` are multiplied by 1 + score. The score grows by 1 with each late
  /// round, at most to late_score_max, and shrinks by 1 in each late_memory without one.
  std::uint32_t late_score_max = 8;
  std::chrono::milliseconds late_memory{10'000};
};

/// Errors: invalid_argument, naming the option.
result<void> validate(const straggler_options& options);
/// Returns the rules with all waiting times divided by `speed`, for experiments.
straggler_options hurried(straggler_options options, double speed);

/// Progress of a worker, by its newest status; cumulative since the start of its incarnation.
struct worker_progress {
  /// Steps finished, whether or not their gradients were used.
  std::uint64_t steps = 0;
  std::uint64_t samples = 0; ///< Samples in these steps.
  /// Time that it could not compute for reasons outside it: waiting for values, other workers, a
  /// link's window, a lease or a parcel. A wait that has not ended counts up to now.
  std::chrono::microseconds blocked{0};

  bool operator==(const worker_progress&) const = default;
};

struct straggler_event {
  enum class kind : std::uint8_t {
    measure,      ///< The worker's measure is now `measure`, perhaps as before.
    stalled,      ///< The worker reports and does not train. Its measure is as before.
    cluster_slow, ///< The brake is on: no measures are taken.
    cluster_well, ///< The brake is off again.
  };
  kind what = kind::measure;
  std::optional<worker_id> worker;                     ///< None for an event on the cluster.
  straggler_measure measure = straggler_measure::full; ///< The worker's.
  job_event what_happened;                             ///< For people and logs, with the numbers.

  bool operator==(const straggler_event&) const = default;
};

using straggler_events = std::vector<straggler_event>;

/// Units: time per sample between statuses, less the time that the worker was blocked, by the
/// caller's clock alone. Events are appended to the caller's buffer.
/// Requires: `now` never goes back; tick() is called at least once in options.round, best at once
/// after the events that came before it. Otherwise the round counts as late.
/// Errors: none. Calls for workers that did not join, or are evicted, do nothing.
/// Determinism: the same calls give the same events; workers are compared in ascending order.
/// Capacity: window_steps measurements for a worker; a worker that left is forgotten after
/// host_memory.
/// Invariants:
/// (1) an eviction leaves at most max(1, out_share of all) evicted, and workers_min at work:
///     may_evict() is always asked. Evictions are eviction_interval apart. Held by: assert in
///     evict(); check_evictions(), check_eviction_told() in cli/sim/job_desired.cpp.
/// (2) a late round, or one under the brake, takes no measures: tick() ends before, act() refuses.
///     Held by: assert in act(), evict().
/// (3) force grows by one degree at a time, each on a slow window that ended after the last
///     measure, with slow_windows in a row. Only a stalled worker is evicted at once, after an
///     event told of it. Held by: assert in act(), evict().
/// (4) no eviction is for ever. It lasts at most probation_max, or host_hold from the last time its
///     host was held back; less if fewer than workers_min work without it. Held by: assert in
///     evict().
/// Sources: backup workers, Chen 2016 (arXiv 1604.00981); lateness score, Lifeguard (arXiv
/// 1707.00788); brake and budget, Kubernetes' zone eviction and Envoy's outlier detection; work
/// given back, DLRover.
class straggler_detector {
public:
  /// Requires: validate(options) succeeded.
  explicit straggler_detector(straggler_options options) : options_(options) {}

  /// Adds a new incarnation of this worker. It begins with full measure, unless it was evicted
  /// lately
  /// or its host is held back; an event tells of the latter. `host`: any name that workers of one
  /// machine share; empty: unknown, and never held back.
  void joined(worker_id worker, std::string host, time_point now, straggler_events& events);
  /// Notes that the incarnation is gone, for whatever reason. An evicted worker stays evicted.
  void left(worker_id worker, time_point now);
  /// Takes the worker's progress, received at `now`. May be called at any rate. Numbers below the
  /// last ones begin a new count.
  void progress(worker_id worker, const worker_progress& done, time_point now);
  /// Runs a round, if options.round has passed since the last one.
  void tick(time_point now, straggler_events& events);

  /// Returns the worker's measure; `full` for an unknown worker. An evicted worker must not get
  /// work.
  straggler_measure measure(worker_id worker) const;

private:
  struct measurement {
    double seconds_per_sample = 0.0;
    std::uint64_t steps = 0;
  };
  struct pace {
    double seconds_per_sample = 0.0;
    double samples_per_step = 0.0;
  };
  /// Measurements of an incarnation.
  struct track {
    std::optional<worker_progress> base; ///< Progress at the last step.
    time_point since{0};                 ///< When that step came, or when it joined.
    worker_progress newest;
    bool trained = false; ///< It finished a step.
    double step_samples_max = 0.0;

    time_point window_since{0};
    std::vector<measurement> window;
    std::uint64_t window_steps = 0;
    std::uint64_t window_samples = 0;
    std::optional<troupe::straggler_detector::pace> pace; ///< Pace of the last window that ended.
    bool closed = false;                                  ///< That window ended in this round.

    bool slow = false;         ///< That window is slow.
    bool stalled = false;      ///< No step for too long.
    bool stalled_long = false; ///< No step for stalled_ratio times as long.
    std::uint32_t slow_windows = 0;
    bool evidence = false; ///< A slow window that no measure answered yet.
    time_point slow_at{0};
    time_point forced_at{0};
    time_point healthy_since{0};
  };
  /// One slot of a worker; it outlives incarnations.
  struct slot {
    std::string host;
    bool present = false;
    time_point left_at{0};
    straggler_measure measure = straggler_measure::full;
    time_point evicted_until{0};
    std::uint32_t evictions = 0; ///< Without forgotten ones.
    track seen;

    bool works() const { return present && measure != straggler_measure::evicted; }
  };
  struct host_record {
    std::deque<time_point> evictions;
    time_point held_until{0};
  };
  /// Statistics of all paces of a round.
  struct group {
    std::size_t reporting = 0;
    double median = 0.0; ///< s per sample.
    double deviation = 0.0;
    double step_samples = 0.0; ///< Samples of a typical step.
  };

  void measure(track& seen, const worker_progress& done, time_point now) const;
  void close_window(track& seen, time_point now) const;
  static void begin_window(track& seen, time_point now);
  group compare() const;
  bool enough(const group& all) const { return all.reporting >= options_.reporting_min; }
  double slow_limit(const group& all) const;
  bool is_slow(const pace& one, const group& all) const;
  void find_stalled(const group& all, time_point now, straggler_events& events);
  double silence_limit(const track& seen) const;
  void find_slow(const group& all, time_point now);
  void brake(const group& all, time_point now, straggler_events& events);
  std::string systemic(const group& all) const;
  void act(const group& all, time_point now, straggler_events& events);
  void restore(worker_id worker, slot& who, time_point now, straggler_events& events) const;

  bool may_evict() const;
  void evict(worker_id worker, const group& all, time_point now, straggler_events& events);
  bool hold_host(const std::string& host, time_point now);
  void release(time_point now, straggler_events& events);
  void readmit(worker_id worker, const std::string& why, time_point now, straggler_events& events);
  void forget(time_point now);
  void begin_track(slot& who, time_point now) const;
  void oversleep(time_point now);
  std::size_t working() const;
  std::string describe(const track& seen, const group& all) const;

  straggler_options options_;
  std::map<worker_id, slot> slots_;
  std::map<std::string, host_record> hosts_;

  std::optional<time_point> round_at_; ///< Time of the last round.
  bool late_ = false;                  ///< The last round was late.
  std::uint32_t late_score_ = 0;
  time_point late_at_{0}; ///< When the score changed.

  double median_ = 0.0; ///< The last m, s per sample; 0: none yet.
  std::optional<double> long_run_median_;
  time_point long_run_since_{0};
  time_point long_run_at_{0};
  bool braked_ = false;
  time_point brake_until_{0};
  std::optional<time_point> evicted_at_;
};

} // namespace troupe
