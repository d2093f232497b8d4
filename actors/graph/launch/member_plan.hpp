// Has the plan of a process as a value: its members, their job and their fields. play.hpp spawns
// its actors, in every way to run.
#pragma once

#include "actors/graph/options/fields.hpp"
#include "actors/graph/plan.hpp"
#include "serialization/ids.hpp"
#include "serialization/job.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace troupe {

/// The plan has no functions: a process takes those of the program from the graph that it makes.
struct member_plan {
  std::vector<member_id> members; ///< One, or the workers that share the process.
  std::string node; ///< Its name in the graph, "learners:1"; empty if no node has the process.
  job_spec job;
  run_options fields;                ///< Those that its role reads; others have their defaults.
  std::filesystem::path checkpoints; ///< Their directory; empty: the job keeps none.
  bool resume = false;               ///< The job goes on from a checkpoint.

  const member_id& self() const { return members.front(); }
};

/// The plans of the processes that a host starts.
struct member_plans {
  job_spec job;
  std::map<role, run_options> fields{}; ///< By their readers, which are all roles that are started.
  std::filesystem::path checkpoints;
  bool resume = false;
  node_roles nodes;
  std::map<std::string, std::string> names{}; ///< names_in_options() of the plan.

  /// Returns the plan of a process. A process of several workers has the name of the first one.
  member_plan of(const member_id& process) const;
};

member_plans member_plans_of(const plan& what, const field_table& table = all_fields());

} // namespace troupe
