// Calls the evaluators of a graph as one.
#pragma once

#include "actors/training/trainer.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"
#include "serialization/rows.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// A node of evaluations.
struct named_evaluator {
  std::string name;
  evaluator_factory make;
};

/// Checks names of measures. Errors: invalid_argument (other characters, a name that is too long,
/// taken or there twice).
result<void> check_measures(const std::vector<measure>& measures);

/// The evaluators of a graph, in its order. They are made with the first call, and used on one
/// thread only.
class evaluators {
public:
  evaluators() = default;
  explicit evaluators(std::vector<named_evaluator> nodes) : nodes_(std::move(nodes)) {}

  bool is_empty() const { return nodes_.empty(); }
  /// Returns the rows of the job's sparse tables that any evaluator needs. Throws the exceptions of
  /// the evaluators; std::runtime_error (a factory made none).
  std::vector<row_keys> rows(const job_spec& job);
  /// Evaluates parameters: f32[] for each table; of a sparse table the rows that the newest rows()
  /// named.
  /// The result is that of the first evaluator, with further measures: "NODE.accuracy", "NODE.auc"
  /// and "NODE.MEASURE" of each other one, or "NODE.loss" if it has none. Requires: there
  /// is an evaluator. Throws the exceptions of the evaluators; std::runtime_error (a factory made
  /// none, a measure has a wrong name).
  evaluation evaluate(const_tensors parameters);

private:
  void make();

  std::vector<named_evaluator> nodes_;
  std::vector<std::unique_ptr<evaluator>> made_;
  std::vector<std::vector<row_keys>> needed_; ///< The rows of each evaluator.
  std::vector<row_keys> all_;                 ///< Those that any of them needs.
};

} // namespace troupe
