// Carries out the plan on a running cluster, one fault after the other.
#pragma once

#include "cli/chaos/cluster.hpp"
#include "cli/chaos/facts.hpp"
#include "cli/chaos/fault_plan.hpp"

#include <functional>
#include <optional>
#include <string>

namespace troupe::chaos {

/// A fault begins when all members were seen active after the fault before. If they are not within
/// `heal_limit`, it begins nevertheless, and the facts say so.
class conductor {
public:
  /// Faults begin for `seconds` after the first line of training. `tell` gets a line for each.
  conductor(double seconds, cluster& job, run_facts& run,
            std::function<void(const std::string&)> tell);

  /// Begins or ends a fault if it is time. Errors: io_failed if a fault cannot be made or undone.
  result<void> step(double now);
  /// Ends the run: a fault that is still on counts up to now.
  void close(double now);
  /// Returns true if no fault is on and none will come.
  bool is_over() const { return over_ && !current_; }

private:
  struct open_fault {
    fault_record record;
    pid_t stopped = 0;
  };

  bool is_time(double now);
  result<void> begin(double now);
  result<void> finish(double now);
  /// Returns nullopt if the fault is not possible just now.
  result<std::optional<open_fault>> carry_out(const planned_fault& what, double now);
  std::optional<open_fault> send(int signal, open_fault what);
  std::string text_of(const fault_record& what) const;

  double seconds_;
  cluster& job_;
  run_facts& run_;
  std::function<void(const std::string&)> tell_;
  fault_plan plan_;
  std::optional<planned_fault> next_;
  std::optional<open_fault> current_;
  std::optional<double> began_;
  double quiet_since_ = 0;
  bool over_ = false;
};

} // namespace troupe::chaos
