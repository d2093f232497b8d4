// Computes gradients with the user's trainer, for workers and for a replay, so that both compute
// the same bytes.
#pragma once

#include "actors/training/sampler.hpp"
#include "actors/training/trainer.hpp"
#include "base/buffer.hpp"
#include "base/error.hpp"
#include "kernels/devices/value_identity.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

struct gradient_task {
  std::uint64_t number = 0; ///< Returned with the outcome.
  batch_id batch;
  std::vector<float_ptr> parameters; ///< One array for each table: whole, or the rows in `rows`.
  std::vector<row_keys> rows;        ///< Rows of sparse tables, from keys_outcome.
  std::uint64_t version = 0;         ///< Version of the parameters; returned with the outcome.
  value_identity identity;           ///< Names the parameters among the workers of this process.
  generation_id generation = {};     ///< Of the step; only lines read it and `clock`, ...
  std::uint64_t clock = 0;           ///< ... for the pushes of their later parts.
};

/// Says that the outcome of a gradient_task is not wanted any more.
struct dropped_task {
  std::uint64_t number = 0; ///< Of the gradient_task.
};

struct gradient_outcome {
  std::uint64_t number = 0;
  std::optional<failure> failed; ///< The trainer's exception; the rest is then empty.
  bool finite = true;            ///< Every element is finite.
  /// One for each dense table that is not frozen; empty if the gradient is not finite.
  std::vector<piece> pieces;
  std::vector<row_piece> rows; ///< One for each sparse table; empty if the gradient is not finite.
  /// Set if the values of `pieces` are null: see push_request::on_device.
  std::shared_ptr<const device_values> on_device;
  float norm = 0;  ///< 0 if no table clips by it: it takes another pass over the gradient.
  double loss = 0; ///< Mean over the batch.
  std::uint64_t samples = 0;
  std::uint64_t base_version = 0;
};

/// Returns the outcome of a task that has failed.
gradient_outcome failed_outcome(std::uint64_t number, failure why);

/// Takes a table's gradient during compute(), once it is complete and all of its elements are
/// finite. After a table that is not finite, no further table is reported.
using gradient_listener = std::function<void(std::uint32_t table, std::span<const float>)>;

/// Asks for the rows of sparse tables that the batch needs.
struct keys_task {
  std::uint64_t number = 0; ///< Returned with the outcome.
  batch_id batch;
};

struct keys_outcome {
  std::uint64_t number = 0;
  std::optional<failure> failed; ///< The trainer's exception; `rows` is then empty.
  std::vector<row_keys> rows;    ///< One for each sparse table.
};

/// Calls a trainer that it makes. Both are used on one thread only.
class gradient_computer {
public:
  /// If no trainer can be made, every outcome has the reason. `keep_on_device`: gradients may stay
  /// on a device.
  gradient_computer(job_spec job, const trainer_factory& make, bool keep_on_device = false);

  keys_outcome keys(const keys_task& task);
  /// Computes a gradient. `early` is called on this thread when the trainer reports a table as
  /// ready, at most once for each table.
  gradient_outcome compute(const gradient_task& task, const gradient_listener& early = {});

private:
  bool keep_on_device(const batch& work, const_tensors parameters, const value_identity& which,
                      gradient_outcome& outcome);

  job_spec job_;
  std::unique_ptr<trainer> model_;
  std::optional<failure> failed_; ///< Set if there is no model.
  sampler batches_;
  buffer_pool pool_;
  bool any_clip_ = false;
  bool keep_on_device_;
};

} // namespace troupe
