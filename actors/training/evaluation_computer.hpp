// Calls the evaluators of a program, for launchers and for a replay.
#pragma once

#include "actors/training/evaluators.hpp"
#include "actors/training/trainer.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace troupe {

/// Result of one evaluation.
struct evaluation_message {
  std::uint64_t number = 0;                   ///< The number that it was requested with.
  std::optional<evaluation> found;            ///< Nullopt if the graph has no evaluator.
  std::vector<std::vector<float>> parameters; ///< One array for each table; of a sparse table only
                                              ///< the rows that evaluators named.
  std::optional<failure> failed;              ///< The reason, if the evaluation failed.
};

/// Returns one array for each table: the whole table, or the rows that were asked for if sparse.
std::vector<std::vector<float>> arrays_of(const job_spec& job, const pull_reply& answer);

/// Evaluates `into.parameters` and sets `found` if there is an evaluator, or `failed` if one throws
/// or has measures with wrong names.
void evaluate_with(evaluators& nodes, evaluation_message& into);

/// Evaluates values of a job's tables. The evaluators are made with the first question, and used on
/// one thread only.
class evaluation_computer {
public:
  /// `nodes`: if it is empty, nothing is evaluated.
  evaluation_computer(job_spec job, std::vector<named_evaluator> nodes);

  /// Returns a pull request for the dense tables and for the rows of sparse tables that the
  /// evaluators need. Errors: job_failed (an evaluator threw this text, or none was made).
  result<pull_request> question();
  /// Evaluates the answer to question().
  evaluation_message evaluate(std::uint64_t number, const pull_reply& answer);

private:
  job_spec job_;
  evaluators nodes_;
};

} // namespace troupe
