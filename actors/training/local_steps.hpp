// Makes a trainer take several steps of an inner optimiser between two exchanges with the store
// (Stich 2019, "Local SGD converges fast and communicates little"). On bsp servers whose optimiser
// is nesterov this is DiLoCo (Douillard et al. 2023): each clock takes the mean over the workers.
// On asp servers each worker exchanges at its own time, as the clients of Nguyen et al. 2022
// (FedBuff) do, without their buffer.
#pragma once

#include "actors/training/trainer.hpp"
#include "serialization/job.hpp"

#include <cstdint>
#include <memory>

namespace troupe {

/// The steps that a worker takes by itself between two exchanges.
struct local_step_options {
  /// Inner steps of a batch, 1 .. 1,000,000 and at most --batch. More: fewer bytes, older values.
  std::uint32_t steps = 10;
  /// The inner optimiser. Its clip_norm limits each inner gradient; full_rate_staleness must be 0.
  optimizer_spec optimizer = {};
  /// Keeps the inner optimiser's state in the worker, from one batch to the next. The state dies
  /// with the worker, so such a run cannot be recorded. Else each batch begins with zeros.
  bool keep = false;
};

/// Returns a trainer whose batch is an outer step. It copies the parameters w, takes one step of
/// the inner optimiser on each stretch of `inner_samples` samples of work.samples (the last may be
/// shorter), and writes w - final values as the gradient. So sgd with a learning rate of 1 on the
/// store adopts the final values, or their mean over the workers of a bsp clock. It returns the
/// mean loss of all samples, each at the values of its own step.
///
/// Shapes: as of `inner`, whose tables are dense. Units: the gradient is a difference of
/// parameters.
/// Errors: throws what `inner` throws. An inner gradient that is not finite makes the whole
/// gradient NaN, and drops a state that is kept.
/// Determinism: a function of its arguments, as `inner` is; with `keep` also of earlier calls.
/// Requires: inner_samples > 0.
/// Cost: memory for a copy of the parameters, and for the optimiser's state.
std::unique_ptr<trainer> take_local_steps(std::unique_ptr<trainer> inner,
                                          const local_step_options& options,
                                          std::uint64_t inner_samples);

} // namespace troupe
