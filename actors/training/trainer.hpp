// Declares the classes that a user writes to train a model: the gradient of a batch, and the
// evaluation of parameters.
#pragma once

#include "base/notes.hpp"
#include "serialization/ids.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Called with a table whose gradient is complete.
using table_listener = std::function<void(std::size_t table)>;

struct device_values; // kernels/devices/device_group.hpp
class value_identity; // kernels/devices/value_identity.hpp

/// One batch of the training data.
struct batch {
  batch_id id;
  std::uint64_t epoch = 0; ///< The epoch, from 0.
  std::uint64_t index = 0; ///< Index within the epoch.
  /// Indices of its samples, a stretch of the seeded permutation of this epoch.
  std::span<const std::uint32_t> samples;
  /// Seed for the trainer's randomness (dropout, augmentation): a function of job seed and batch,
  /// so that a batch has the same gradient on every worker.
  std::uint64_t seed = 0;
  /// One list for each table of the job. For a sparse table: the keys that trainer::keys named, in
  /// ascending order, each once. Empty for dense tables, and in trainer::keys.
  std::span<const std::span<const std::uint64_t>> keys = {};
  /// See ready(). Empty if no receiver needs early gradients.
  table_listener on_ready = {};
  /// Takes counts and log lines of the trainer. A batch that is computed again counts again.
  node_notes notes = {};

  /// Reports, from within gradient(), that every element of `gradients[table]` is final, while
  /// other tables are still being computed. In a run without servers the table then goes to the
  /// other workers early. Unreported tables are ready at the end; the order is free.
  void ready(std::size_t table) const {
    if (on_ready)
      on_ready(table);
  }
};

/// One list for each table of the job, to which the keys of sparse tables are added, in any order
/// and with any repetition.
using key_lists = std::span<std::vector<std::uint64_t>>;

/// One f32 array for each table of the job, in the job's order. A sparse table's array has the rows
/// of the named keys, in ascending order of the keys: f32[keys, width]. A frozen table's array of
/// gradients is empty.
using const_tensors = std::span<const std::span<const float>>;
using mutable_tensors = std::span<const std::span<float>>;

/// A gradient that stays on the device that computed it.
struct device_gradient {
  std::shared_ptr<const device_values> values; ///< All tables, one after the other.
  double squares = 0;                          ///< Sum of squares; not finite if a value is not.
  double loss = 0;                             ///< Mean over the batch.
};

/// Made and used on one worker's thread.
class trainer {
public:
  virtual ~trainer() = default;
  /// Names the rows of sparse tables that the gradient of this batch needs or changes. Called some
  /// time before gradient(); calls for other batches may come in between. May throw.
  virtual void keys(const batch& /*work*/, key_lists /*touched*/) {}
  /// Writes d(mean loss over the batch)/d(parameter) to every element of `gradients`, which has
  /// none for frozen tables; returns the mean loss. Must be a function of its arguments alone. May
  /// throw: the job then stops with the text.
  /// During the call the CPU treats floats of magnitude below 2^-126 as zeros
  /// (kernels/flush_denormals.hpp).
  virtual double gradient(const batch& work, const_tensors parameters,
                          mutable_tensors gradients) = 0;
  /// Called in place of gradient() if the workers of a process add up their pushes, so that their
  /// devices can add them up. `which` is equal for those workers that have the same parameters. If
  /// it returns nullopt, gradient() is called for this batch and for all later ones. Not called if
  /// a table is frozen. May throw, as gradient() may.
  virtual std::optional<device_gradient> gradient_on_device(const batch& /*work*/,
                                                            const_tensors /*parameters*/,
                                                            const value_identity& /*which*/) {
    return std::nullopt;
  }
};

/// A quality of parameters under a name of its own, such as rmse.
struct measure {
  /// At most 32 of the characters [a-z0-9_]. It may not be a key of the report or a field of the
  /// event `evaluated`.
  std::string name;
  double value = 0.0; ///< A value that is not finite is null in the report and in events.

  bool operator==(const measure&) const = default;
};

/// Quality of parameters on the test data.
struct evaluation {
  double loss = 0.0;
  std::optional<double> accuracy = {}; ///< Share of right answers; nullopt: there are no classes.
  std::optional<double> auc = {};      ///< Two classes only.
  /// One line that the display shows. An evaluator must not print by itself.
  std::string note = {};
  std::vector<measure> measures = {}; ///< In the order of the display; each name once.
};

/// Computes the quality of parameters, on one thread.
class evaluator {
public:
  virtual ~evaluator() = default;
  /// Names the rows of sparse tables that evaluate() needs. Called before each evaluate().
  virtual void keys(key_lists /*touched*/) {}
  virtual evaluation evaluate(const_tensors parameters) = 0;
};

/// Makes the trainer of a worker, on the thread that uses it.
using trainer_factory = std::function<std::unique_ptr<trainer>()>;
/// Makes the evaluator of a job, on the thread that uses it.
using evaluator_factory = std::function<std::unique_ptr<evaluator>()>;

} // namespace troupe
