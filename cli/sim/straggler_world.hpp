// Runs random fleets in virtual time before the straggler detector. Steps have log-normal jitter
// and pauses. Workers are slow in every way of the rules, a server is slow, or the detector
// oversleeps.
#pragma once

#include "actors/protocol/coordinator/straggler_detector.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace troupe::sim {

using namespace std::chrono_literals;

/// Tells how one worker differs from a healthy one.
struct habit {
  double slowness = 1.0;
  time_point from = 0s;
  time_point on_off = 0s; ///< Slow and not slow for this time in turn; 0: always slow.
  double data = 1.0;      ///< Factor of its steps' samples and of the time for them.
  double blocked = 0.0;   ///< Mean wait for the job, s a step, from `from` on.
};

struct fleet_options {
  std::uint32_t workers = 10;
  double step = 0.5;    ///< Median, s.
  double jitter = 0.25; ///< Deviation of the logarithm of a step's time.
  double pauses = 2e-4; ///< Share of steps with a pause of 2 to 8 s.
  time_point length = 30min;
  bool detector_sleeps = false; ///< It sleeps for 3 to 15 s, about every 2 min.
  straggler_options detector;
};

struct eviction {
  worker_id worker;
  time_point at;
  bool straggler = false;
  time_point slow_since;
};

struct straggler_tally {
  double worker_hours = 0.0;
  std::uint64_t steps = 0;
  int stragglers = 0;
  int healthy_out = 0;
  int stragglers_out = 0; ///< Evictions: a worker may be out several times.
  int forced = 0;         ///< Verdicts by which a healthy worker lost some measure.
  int stalled = 0;
  int cluster_slow = 0;
  int sleeps = 0;
  int over_budget = 0; ///< Too many out, too few at work, or evictions too near.
  std::size_t out_max = 0;
  double out_after_max = 0.0; ///< Longest s from onset to first eviction of a straggler.
  int never_out = 0;          ///< Stragglers.
  std::vector<eviction> evictions;

  void add(const straggler_tally& other);
};

/// A detector, and workers that apply its verdicts. A function of options, habits and seed.
class straggler_world {
public:
  straggler_world(fleet_options options, std::uint64_t seed);

  habit& operator[](std::uint32_t worker) { return members_[worker].habit; }
  straggler_tally run();

private:
  struct member {
    sim::habit habit;
    double speed = 1.0;
    bool working = false;
    std::uint32_t life = 0; ///< Events of former lives are dropped.
    worker_progress done;
    double wait = 0.0; ///< Rest of the time for which it is blocked.
    bool computing = false;
    bool was_out = false;
  };
  struct event {
    time_point at;
    std::uint32_t worker;
    std::uint32_t life;
    bool joins;
    bool operator>(const event& other) const {
      return std::pair{at, worker} > std::pair{other.at, other.worker};
    }
  };
  struct late_report {
    std::uint32_t worker;
    worker_progress done;
  };

  static bool is_straggler(const member& one) { return one.habit.slowness > 1.0; }
  double uniform(double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random_);
  }

  void join(std::uint32_t i, time_point now);
  void begin(std::uint32_t i, time_point now);
  void work_until(time_point end);
  /// Ends the current activity and begins the next: to wait, then to compute.
  void step(std::uint32_t i, time_point now);
  void report(std::uint32_t i, time_point now);
  /// Handles the detector's mailbox: its own round is somewhere among the reports.
  void wake(time_point now);
  void tick(time_point now);
  void reconcile(const straggler_event& detected, time_point now);

  fleet_options options_;
  std::mt19937_64 random_;
  std::normal_distribution<> normal_;
  straggler_detector detector_;
  straggler_events detected_;
  std::vector<member> members_;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  std::set<std::uint32_t> out_;
  std::vector<late_report> backlog_;
  bool asleep_ = false;
  time_point evicted_at_{0};
  straggler_tally tally_;
};

} // namespace troupe::sim
