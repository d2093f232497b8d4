// One rank of training without servers (--sync allreduce): the whole model, its optimiser's state,
// and the gradient of the rank's slot of each bsp clock. A plain class: who adds up the gradients
// of all ranks does so in sum(), between compute() and step().
//
//   compute() -> sum() holds the own gradient -> [all ranks' sums become equal] -> step()
//
// Determinism: ranks that have equal values and equal sums have equal values after step(). A rank
// that is lost between two calls of step() leaves the others as they were after the first one.
#pragma once

#include "actors/store/table_store.hpp"
#include "actors/training/gradient_computer.hpp"
#include "actors/training/held_values.hpp"
#include "serialization/buffer.hpp"
#include "serialization/error.hpp"
#include "serialization/job.hpp"
#include "storage/checkpoint.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace troupe {

class peer_model {
public:
  /// What travels with the gradients, added up like them.
  struct remarks {
    float stop = 0;     ///< Above 0: someone wants to end here.
    float unusable = 0; ///< Slots whose gradients were not finite; they count as zeros.
  };

  /// With the initial values, at clock 0. Requires: a bsp job of dense tables.
  peer_model(const job_spec& job, const trainer_factory& make, std::uint32_t rank);

  const job_spec& job() const { return job_; }
  /// Steps taken: the next gradient is of this clock.
  std::uint64_t clock() const { return clock_; }
  bool finished() const { return clock_ == clocks_; }
  /// Batches that the steps so far were made of: each of the first ones, once.
  batch_id done() const;

  /// Zeros where the clock, the last one of its pass, has fewer slots than ranks.
  /// Errors: invalid_argument (what the trainer threw).
  result<void> compute(bool stop);
  std::span<float> sum() { return {sum_.get(), sum_floats_}; }
  /// Of the last gradient: its samples, and the mean loss.
  std::uint64_t samples() const { return samples_; }
  double loss() const { return loss_; }
  /// Takes the clock's step with what sum() holds. Where that is not finite nothing changes but the
  /// clock, as with servers.
  remarks step();

  /// All that a rank has to know, bit for bit, but for the clock: for one that lags behind.
  std::vector<float> state() const;
  std::size_t state_floats() const;
  /// Errors: damaged.
  result<void> take_state(std::span<const float> state, std::uint64_t clock);

  /// For a checkpoint, and from one. Errors: damaged.
  std::vector<partition_image> images() const;
  result<void> restore(const std::vector<partition_image>& images, std::uint64_t clock);

  /// The values of all tables, one after the other.
  std::size_t parameters_count() const;
  void read_parameters(std::span<float> into) const;
  /// Of all values and states: equal where those are equal, byte for byte.
  std::uint64_t checksum() const;

private:
  result<held_ptr> values() const;

  job_spec job_;
  std::uint32_t rank_;
  std::uint64_t clocks_;
  std::uint64_t clock_ = 0;
  std::shared_ptr<buffer_pool> pool_ = std::make_shared<buffer_pool>();
  std::vector<table_id> tables_;
  std::vector<partition_id> partitions_;
  std::vector<std::size_t> begins_; ///< Of each table in the sum.
  std::size_t sum_floats_ = 0;
  std::shared_ptr<float> sum_;
  std::shared_ptr<table_store> store_;
  held_ptr nothing_held_;
  gradient_computer computer_;
  std::uint64_t samples_ = 0;
  double loss_ = 0;
};

} // namespace troupe
