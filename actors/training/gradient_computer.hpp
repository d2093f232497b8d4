// Computes gradients with the user's trainer: what a worker and a replay have in common, so that
// both compute the same bytes.
#pragma once

#include "actors/training/sampler.hpp"
#include "actors/training/trainer.hpp"
#include "base/buffer.hpp"
#include "kernels/devices/value_identity.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe {

using trainer_factory = std::function<std::unique_ptr<trainer>()>;

struct gradient_task {
  std::uint64_t number = 0; ///< Comes back with the outcome.
  batch_id batch;
  std::vector<float_ptr> parameters; ///< One array for each table: whole, or the rows of `rows`.
  std::vector<row_keys> rows;        ///< Of sparse tables; from keys_outcome.
  std::uint64_t version = 0;         ///< Of the parameters; comes back with the outcome.
  value_identity identity;           ///< Of the parameters, among the workers of this process.
};

struct gradient_outcome {
  std::uint64_t number = 0;
  std::string failed;          ///< What the trainer threw; the rest is then empty.
  bool finite = true;          ///< Every element.
  std::vector<piece> pieces;   ///< One for each dense table; none where the gradient is not finite.
  std::vector<row_piece> rows; ///< The same for sparse tables.
  /// With values of `pieces` that are null: as update::on_device.
  std::shared_ptr<const device_values> on_device;
  float norm = 0;  ///< 0 where no table clips by it: another pass over the gradient.
  double loss = 0; ///< Mean over the batch.
  std::uint64_t samples = 0;
  std::uint64_t base_version = 0;
};

/// Hears of a table's gradient in the midst of compute(), once it is complete and all of its
/// elements are finite. None is told of after one that is not.
using gradient_listener = std::function<void(std::uint32_t table, std::span<const float>)>;

/// Which rows of sparse tables does the batch need?
struct keys_task {
  std::uint64_t number = 0; ///< Comes back with the outcome.
  batch_id batch;
};

struct keys_outcome {
  std::uint64_t number = 0;
  std::string failed;         ///< What the trainer threw; `rows` is then empty.
  std::vector<row_keys> rows; ///< One for each sparse table.
};

/// Lives on one thread, as the trainer that it makes there.
class gradient_computer {
public:
  /// Where no trainer can be made, every outcome says why. `keep_on_device`: gradients may stay on
  /// a device.
  gradient_computer(job_spec job, const trainer_factory& make, bool keep_on_device = false);

  keys_outcome keys(const keys_task& task);
  /// `early`: called on this thread, as the trainer says that tables are ready; once for a table at
  /// most.
  gradient_outcome compute(const gradient_task& task, const gradient_listener& early = {});

private:
  bool keep_on_device(const batch& work, const_tensors parameters, const value_identity& which,
                      gradient_outcome& outcome);

  job_spec job_;
  std::unique_ptr<trainer> model_;
  std::string failed_; ///< Why there is no model.
  sampler batches_;
  buffer_pool pool_;
  bool any_clip_ = false;
  bool keep_on_device_;
};

} // namespace troupe
