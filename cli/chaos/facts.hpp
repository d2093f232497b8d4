// What was seen of a run under faults: plain values, for the checkers and the report.
#pragma once

#include "cli/chaos/fault_plan.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace troupe::chaos {

/// All times are seconds since the cluster was started.
struct fault_record {
  planned_fault what;
  double began = 0;
  double ended = 0;
  bool overlaps = false; ///< It began while the cluster had not recovered from another.
};

struct event {
  double at = 0;
  std::string text;
};

/// One line of the launcher's display.
struct progress_line {
  double at = 0;
  std::string phase;
  std::uint64_t active = 0; ///< Servers that have all they should have, and workers.
  int percent = 0;          ///< Of the batches that are done.
};

/// A checkpoint with a flipped bit.
struct flipped_file {
  std::uint64_t checkpoint = 0;
  std::string file;
  double at = 0;
  std::optional<bool> refused; ///< By the reader, after the run. None: it is not there any more.
};

/// The last line that count_batches prints of its sums.
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
  // What was asked for.
  plan_options asked;
  std::uint32_t replicas = 1;
  std::uint64_t batches = 0;
  std::uint64_t minimum = 1; ///< Faults of each kind that was asked for.
  double heal_limit = 0;     ///< Seconds from the end of a fault until all members are active.
  double finish_limit = 0;   ///< From the last one until the job is done.
  std::uint64_t checkpoints_kept = 0; ///< Older ones are removed.
  double rss_limit_mb = 0;
  double descriptors_limit = 0;

  // What was seen.
  std::vector<fault_record> faults;
  std::vector<event> events;
  std::vector<progress_line> progress;
  std::vector<flipped_file> flips;
  std::optional<sums> counted;
  std::optional<int> exit_status; ///< None: it was ended because it took too long.
  double ended_at = 0;
  largest rss_mb, descriptors;

  // What the run's own report says.
  bool has_report = false;
  double applied = 0, duplicates = 0, refused = 0, longest_pause_ms = 0;
  std::uint64_t recoveries = 0, not_recovered = 0, rolled_back = 0;

  /// Servers and workers.
  std::uint64_t members() const { return std::uint64_t{asked.servers} + asked.workers; }
  std::array<std::uint64_t, fault_kinds> fault_counts() const;
  /// Those that began when the cluster had recovered from all others.
  std::uint64_t faults_apart() const;
  /// Between the beginning of a fault that overlaps and the recovery from it.
  bool is_overlapped(double at) const;
  double last_fault_ended() const;
  /// Whether all members were seen active, in training, a moment after that time.
  bool whole_since(double at) const;
  /// From then until all members were active. None: they never were.
  std::optional<double> healed_after(double fault_ended) const;
  /// Events that contain the text.
  std::uint64_t count(const std::string& text) const;
  /// "checkpoint 7 committed", "checkpoint 8 failed: no space": after `from`, up to `to`.
  std::uint64_t checkpoints(const std::string& what, double from = 0,
                            double to = std::numeric_limits<double>::infinity()) const;

private:
  std::optional<double> active_at(double since) const;
};

} // namespace troupe::chaos
