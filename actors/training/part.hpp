// Declares the class that a user writes for one part of a pipeline: a piece of a model that is too
// large for one process. docs/design/pipeline.md is its page.
#pragma once

#include "actors/training/trainer.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// A stretch of a batch's samples.
struct micro_batch {
  const batch& of;                        ///< The whole batch: id, epoch, index, samples, seed.
  std::span<const std::uint32_t> samples; ///< Those of this micro-batch.
  std::uint32_t number = 0;               ///< Its place among the micro-batches of the batch.
  std::uint32_t count = 1;                ///< Micro-batches of the batch.
};

/// Takes the output of a part for one micro-batch.
class part_output {
public:
  explicit part_output(std::size_t samples) : samples_(samples) {}

  /// Returns the output, f32[samples, width], filled with NaN. Write each element of it. The width
  /// is the same for all micro-batches. Throws std::invalid_argument for a width of 0, and for a
  /// second call.
  std::span<float> of_width(std::size_t width);

  // -- for the shell --
  /// Returns the width; 0: of_width() was not called.
  std::size_t width() const { return width_; }
  std::vector<float> take() { return std::move(values_); }

private:
  std::size_t samples_;
  std::size_t width_ = 0;
  std::vector<float> values_;
};

/// Made and used on one thread. `values` and `gradients` have one array for each of the part's own
/// tables, in the order in which its spec lists them. `in` is the output of the part above for this
/// micro-batch, f32[samples, width]. It is empty in the first part.
///
/// Both functions must depend on their arguments alone. They may throw: the job then stops with the
/// text. During the calls the CPU treats floats of magnitude below 2^-126 as zeros
/// (kernels/flush_denormals.hpp).
class part {
public:
  virtual ~part() = default;
  /// Computes the output. The last part has none.
  virtual void forward(const micro_batch& micro, const_tensors values, std::span<const float> in,
                       part_output& out) = 0;
  /// Writes d(mean loss of the micro-batch)/d(parameter) to each element of `gradients`. Writes
  /// d/d(in) to each element of `in_gradient`, which is empty in the first part. `out_gradient`:
  /// d/d(output), empty in the last part. The last part returns the mean loss of the micro-batch;
  /// from other parts the result is not used.
  /// Called after forward() of the micro-batch, with the same values. Calls for other micro-batches
  /// may come in between. A death or a lost lease may end a batch early. Then forward() comes again
  /// without backward(), for this batch or another one.
  /// The output and all gradients are to be finite: too many batches with NaN or infinity in a row
  /// end the job.
  virtual double backward(const micro_batch& micro, const_tensors values, std::span<const float> in,
                          std::span<const float> out_gradient, mutable_tensors gradients,
                          std::span<float> in_gradient) = 0;
};

/// Makes a part, on the thread that uses it.
using part_maker = std::function<std::unique_ptr<part>()>;

/// Describes one part of a line.
struct part_spec {
  std::vector<std::string> tables; ///< Names of its own tables. No other part has them.
  part_maker make;
};

// -- for the shell --

/// Marks an element that was to be written and was not: a NaN that no arithmetic makes from
/// numbers. Its payload passes through arithmetic, so a sum that begins with one is found, too.
constexpr std::uint32_t unwritten_bits = 0xffff'ffff; // Equal bytes, which memset() writes fast.
void mark_unwritten(std::span<float> values);
/// Returns the index of the first unwritten element; values.size() if there is none.
std::size_t first_unwritten(std::span<const float> values);

} // namespace troupe
