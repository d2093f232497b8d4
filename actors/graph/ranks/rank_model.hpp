// Holds one rank of training without servers: the whole model, its optimiser's
// state, and the gradient of the rank's slot of each bsp clock. A plain class: its caller adds up
// the gradients of all ranks in parts(), between compute() and step().
//
//   compute() -> parts() hold the own gradient -> [all ranks' sums become equal] -> step()
//
// Parts are tables in the order of the next forward pass; small tables share a part. compute()
// tells which parts are complete while it computes the rest, so that they can be added up
// meanwhile. The first part, which also has the remarks, is complete when compute() returns.
//
// A gradient that is not finite counts as zeros. If parts of it have left before that is found, the
// sums are spoiled(). All ranks see it in the remarks, call repeat() and add up again.
//
// Determinism: ranks that have equal values and equal sums have equal values after step(). A rank
// that is lost between two calls of step() leaves the others as they were after the first call.
#pragma once

#include "actors/tables/table_store.hpp"
#include "actors/training/cached_values.hpp"
#include "actors/training/gradient_computer.hpp"
#include "base/buffer.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"
#include "serialization/snapshot.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace troupe {

class rank_model {
public:
  /// Remarks travel with the gradients and are added up like them.
  struct step_flags {
    float stop = 0;     ///< Above 0: a rank wants to end here.
    float unusable = 0; ///< Slots whose gradients were not finite; they count as zeros.
    float spoiled = 0;  ///< Above 0: the sums have parts of such a gradient.
  };

  /// With the initial values, at clock 0. Requires: a bsp job of dense tables. `sum`: memory for
  /// sum_floats(job) numbers, zeros at first and since then of this rank alone; empty: its own. It
  /// is not touched before compute().
  rank_model(const job_spec& job, const trainer_factory& make, std::uint32_t rank,
             std::shared_ptr<float> sum = {}, server_functions functions = {});

  /// Returns the size of sum(), which has no room for frozen tables.
  static std::size_t sum_floats(const job_spec& job);

  const job_spec& job() const { return job_; }
  const std::vector<partition_id>& partitions() const { return partitions_; }
  /// Returns the number of steps taken, which is the clock of the next gradient.
  std::uint64_t clock() const { return clock_; }
  bool finished() const { return clock_ == clocks_; }
  /// Returns the number of batches in the steps so far: each of the first batches counts once.
  batch_id done() const;

  /// Computes the own gradient into parts(). It is zero if the clock, the last one of its pass, has
  /// no slot for this rank. `ready`: called with the index of each part that is complete before the
  /// end; compute() then leaves that part alone. Errors: invalid_argument (the trainer threw).
  result<void> compute(bool stop, const std::function<void(std::uint32_t part)>& ready = {});
  /// Returns the parts, in the order in which the next gradient needs them. They never move.
  const std::vector<std::span<float>>& parts() const { return parts_; }
  /// Returns all parts together.
  std::span<float> sum() { return {sum_.get(), sum_floats_}; }
  /// Returns whether the sums of all ranks are useless; see above.
  bool spoiled() const;
  /// Writes the own gradient into all parts again.
  void repeat();
  /// Return the samples and the mean loss of the last gradient.
  std::uint64_t samples() const { return own_.samples; }
  double loss() const { return own_.loss; }
  /// Takes the clock's step with the sums, and returns the remarks of all ranks. If the sums are
  /// not finite, only the clock changes, as with servers. Errors, which leave the values as they
  /// were: contract_broken (a server function threw), non_finite (its result).
  result<step_flags> step();
  /// Returns whether the last step left out the own gradient or the sum, because it was not finite.
  bool refused() const { return refused_; }

  /// Returns the whole state of a rank but its clock, bit for bit, for a rank that lags behind.
  std::vector<float> state() const;
  std::size_t state_floats() const;
  /// Takes another rank's state and clock. Errors: damaged.
  result<void> take_state(std::span<const float> state, std::uint64_t clock);

  /// Return the images for a checkpoint, and restore from those of one. Errors: damaged.
  std::vector<partition_image> images() const;
  result<void> restore(const std::vector<partition_image>& images, std::uint64_t clock);

  /// Copies the values of all tables, one table after the other.
  void read_parameters(std::span<float> into) const;
  /// Returns a checksum of all values and states, which is equal if they are equal byte for byte.
  std::uint64_t checksum() const;

private:
  result<cached_ptr> values() const;
  void hold_frozen();
  gradient_listener early_listener(const std::function<void(std::uint32_t part)>& ready);
  void put_own();
  void put(const piece& piece);
  step_flags told() const;

  job_spec job_;
  server_functions functions_;
  std::uint32_t rank_;
  std::uint64_t clocks_;
  std::uint64_t clock_ = 0;
  std::shared_ptr<buffer_pool> pool_ = std::make_shared<buffer_pool>();
  std::vector<table_id> tables_;
  std::vector<partition_id> partitions_;
  std::vector<std::size_t> begins_; ///< Begin of each table in the sum.
  std::size_t sum_floats_ = 0;
  std::shared_ptr<float> sum_; ///< The remarks, then the tables.
  std::vector<std::span<float>> parts_;
  std::vector<std::uint32_t> part_of_; ///< Part of each table.
  std::shared_ptr<table_store> store_;
  cached_ptr known_; ///< The frozen tables.
  gradient_computer computer_;
  // These describe the last gradient.
  bool stop_ = false;
  gradient_outcome own_;
  std::vector<bool> left_; ///< By part: it was complete before the end.
  bool refused_ = false;
};

} // namespace troupe
