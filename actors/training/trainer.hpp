// What a user writes to train a model: the gradient of one batch, and a judgement of parameters.
#pragma once

#include "serialization/ids.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Hears which table's gradient is complete.
using table_listener = std::function<void(std::size_t table)>;

struct device_values; // kernels/devices/device_group.hpp
class value_identity; // kernels/devices/value_identity.hpp

/// One batch of the training data.
struct batch {
  batch_id id;
  std::uint64_t epoch = 0; ///< From 0.
  std::uint64_t index = 0; ///< Within the pass.
  /// Indices of its samples, a stretch of the seeded permutation of this pass.
  std::span<const std::uint32_t> samples;
  /// For any randomness of the trainer (dropout, augmentation): a function of job seed and batch,
  /// so that a batch gives the same gradient whoever computes it.
  std::uint64_t seed = 0;
  /// One list for each table of the job: of a sparse table the keys that trainer::keys named, in
  /// ascending order, each once. Empty for dense tables, and in trainer::keys.
  std::span<const std::span<const std::uint64_t>> keys = {};
  /// See ready(). Empty where nobody needs to know.
  table_listener on_ready = {};

  /// May be called in gradient(): every element of `gradients[table]` is written and stays as it
  /// is, though those of other tables are still computed. Without servers it then goes to the other
  /// workers meanwhile. Tables that are not named are ready at the end; the order is free.
  void ready(std::size_t table) const {
    if (on_ready)
      on_ready(table);
  }
};

/// One list for each table of the job, to which the keys of sparse tables are added: in any order,
/// and as often as one likes.
using key_lists = std::span<std::vector<std::uint64_t>>;

/// One f32 array for each table of the job, in the job's order. That of a sparse table has the rows
/// of the keys that were named, in ascending order of the keys: f32[keys, width].
using const_tensors = std::span<const std::span<const float>>;
using mutable_tensors = std::span<const std::span<float>>;

/// A gradient that was left where it was computed.
struct device_gradient {
  std::shared_ptr<const device_values> values; ///< Of all tables, one after the other.
  double squares = 0;                          ///< Sum of all values', not finite where one is not.
  double loss = 0;                             ///< Mean over the batch.
};

/// Made and used on one worker's thread.
class trainer {
public:
  virtual ~trainer() = default;
  /// Names the rows of sparse tables that the gradient of this batch needs or changes. Called some
  /// time before gradient(), with other batches' calls between them. May throw.
  virtual void keys(const batch& /*work*/, key_lists /*touched*/) {}
  /// Writes d(mean loss over the batch)/d(parameter) to every element of `gradients`; returns the
  /// mean loss. Must be a function of its arguments alone. May throw: the job then stops with the
  /// text.
  /// Floats below 2^-126 count as zeros meanwhile (kernels/flush_denormals.hpp).
  virtual double gradient(const batch& work, const_tensors parameters,
                          mutable_tensors gradients) = 0;
  /// Called in place of gradient() where the workers of a process add up what they push, so that it
  /// can be added up on their devices. `which`: the same for those of these workers that have the
  /// same parameters. Nothing: gradient() is called, and this no more. May throw, as that.
  virtual std::optional<device_gradient> gradient_on_device(const batch& /*work*/,
                                                            const_tensors /*parameters*/,
                                                            const value_identity& /*which*/) {
    return std::nullopt;
  }
};

/// How good parameters are on the test data.
struct evaluation {
  double loss = 0.0;
  double accuracy = 0.0;
  std::optional<double> auc; ///< Two classes only.
  std::string note; ///< A line for who watches the run; what is printed breaks the display.
};

class evaluator {
public:
  virtual ~evaluator() = default;
  /// Names the rows of sparse tables that evaluate() needs. Called before each evaluate().
  virtual void keys(key_lists /*touched*/) {}
  virtual evaluation evaluate(const_tensors parameters) = 0;
};

/// Makes the evaluator of a job, on the thread that uses it.
using evaluator_factory = std::function<std::unique_ptr<evaluator>()>;

} // namespace troupe
