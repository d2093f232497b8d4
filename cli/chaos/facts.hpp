// Holds the observations of a run under faults: plain values, for the checkers and the report.
#pragma once

#include "cli/chaos/fault_plan.hpp"
#include "serialization/job_event.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace troupe::chaos {

/// All times are seconds since the start of the cluster.
struct fault_record {
  planned_fault what;
  double began = 0;
  double ended = 0;
  bool overlaps = false; ///< It began while the cluster had not recovered from another.
};

struct event {
  double at = 0;
  job_event what;
};

/// One line of the launcher's display.
struct progress_line {
  double at = 0;
  std::string phase;
  std::uint64_t active = 0; ///< Servers with all the data they should have, and workers.
  int percent = 0;          ///< Share of the batches that are done.
};

/// A checkpoint with a flipped bit.
struct flipped_file {
  std::uint64_t checkpoint = 0;
  std::string file;
  double at = 0;
  std::optional<bool> refused; ///< By the reader, after the run. nullopt: it was gone by then.
};

/// The last line of sums that count_batches prints.
struct sums {
  double least = 0, most = 0;
  double least_expected = 0, most_expected = 0;
  std::uint64_t right = 0, elements = 0;
};

struct largest {
  double value = 0;
  std::string whose;
  void take(double seen, const std::string& who);
};

struct run_facts {
  // The request.
  plan_options asked;
  std::uint32_t replicas = 1;
  std::uint64_t batches = 0;
  std::uint64_t minimum = 1; ///< Least number of faults of each kind that was asked for.
  double heal_limit = 0;     ///< Seconds from the end of a fault until all members are active.
  double finish_limit = 0;   ///< Seconds from the end of the last fault until the job is done.
  std::uint64_t checkpoints_kept = 0; ///< Older ones are removed.
  double rss_limit_mb = 0;
  double descriptors_limit = 0;

  // The observations.
  std::vector<fault_record> faults;
  std::vector<event> events;
  std::vector<progress_line> progress;
  std::vector<flipped_file> flips;
  std::optional<sums> counted;
  std::optional<int> exit_status; ///< nullopt: the job took too long and was killed.
  double ended_at = 0;
  largest rss_mb, descriptors;

  // The contents of the run's own report.
  bool has_report = false;
  double applied = 0, duplicates = 0, refused = 0, longest_pause_ms = 0;
  std::uint64_t recoveries = 0, not_recovered = 0, rolled_back = 0;

  /// Returns the number of servers and workers.
  std::uint64_t members() const {
    return std::uint64_t{asked.servers} + asked.workers + asked.actors;
  }
  std::array<std::uint64_t, fault_kinds> fault_counts() const;
  /// Returns the number of faults that began when the cluster had recovered from all others.
  std::uint64_t faults_apart() const;
  /// Returns true between the beginning of a fault that overlaps and the recovery from it.
  bool is_overlapped(double at) const;
  double last_fault_ended() const;
  /// Returns true if all members were seen active, in training, more than 0.5 s after `at`.
  bool whole_since(double at) const;
  /// Returns the seconds from `fault_ended` until all members were active; nullopt: they never
  /// were.
  std::optional<double> healed_after(double fault_ended) const;
  /// Returns the number of events of the kind after `from`, up to `to`.
  std::uint64_t count(event_kind kind, double from = 0,
                      double to = std::numeric_limits<double>::infinity()) const;

private:
  std::optional<double> active_at(double since) const;
};

} // namespace troupe::chaos
