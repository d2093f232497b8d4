// Decides which parameters of a job are evaluated, and when.
#pragma once

#include "actors/protocol/session/job_update.hpp"

#include <cstdint>
#include <optional>

namespace troupe {

enum class evaluated_parameters : std::uint8_t {
  epochs,  ///< Those after each epoch, and the final ones.
  final,   ///< The final ones.
  offered, ///< Those that members offer, each of which they keep until it is taken.
};

/// A plain state machine.
///
/// Invariants:
/// (1) at most one evaluation is requested at a time; an epoch that ends meanwhile is left out.
///     Held by: assert in done().
/// (2) the final evaluation is requested once, and nothing after it. Held by: assert in look().
class evaluation_plan {
public:
  evaluation_plan(evaluated_parameters which, std::uint64_t batches_per_epoch)
      : which_(which), batches_per_epoch_(batches_per_epoch) {}

  /// Returns the number of epochs in the present parameters, if they are to be evaluated now.
  std::optional<std::uint64_t> look(const job_update& news);
  /// Takes note of the result of the requested evaluation. Returns whether it was the final one.
  bool done();

private:
  evaluated_parameters which_;
  std::uint64_t batches_per_epoch_;
  bool runs_ = false;
  bool is_last_ = false; ///< The evaluation that runs, or ran last, is the final one.
  std::uint64_t epoch_ = 0;
};

} // namespace troupe
