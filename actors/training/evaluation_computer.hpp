// Calls the evaluator of a program, for launchers and for a replay.
#pragma once

#include "actors/training/trainer.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Result of one evaluation.
struct evaluation_message {
  std::uint64_t number = 0;                   ///< The number that it was requested with.
  std::optional<evaluation> found;            ///< Nullopt if the graph has no evaluator.
  std::vector<std::vector<float>> parameters; ///< One array for each table; of a sparse table only
                                              ///< the rows that the evaluator named.
  std::string failed;                         ///< Not empty: why the evaluation failed.
};

/// Checks names of measures. Errors: invalid_argument (other characters, a name that is too long,
/// taken or there twice).
result<void> check_measures(const std::vector<measure>& measures);

/// Evaluates `into.parameters` and sets `found`, or `failed` if the evaluator throws or its
/// measures have wrong names.
void evaluate_with(evaluator& model, evaluation_message& into);

/// Evaluates values of a job's tables. The evaluator is made with the first question, and used on
/// one thread only.
class evaluation_computer {
public:
  /// `make`: may be empty, and nothing is then evaluated.
  evaluation_computer(job_spec job, evaluator_factory make);

  /// Returns a pull request for the dense tables and for the sparse tables' rows that the evaluator
  /// needs. Errors: invalid_argument (the evaluator threw this text, or none was made).
  result<pull_request> question();
  /// Evaluates the answer to question().
  evaluation_message evaluate(std::uint64_t number, const pull_reply& answer);

private:
  job_spec job_;
  evaluator_factory make_;
  std::unique_ptr<evaluator> model_;
};

} // namespace troupe
