// One rank of training without servers (--sync allreduce): the whole model, its optimiser's state,
// and the gradient of the rank's slot of each bsp clock. A plain class: who adds up the gradients
// of all ranks does so in parts(), between compute() and step().
//
//   compute() -> parts() hold the own gradient -> [all ranks' sums become equal] -> step()
//
// Parts are tables in their order, which is that of the next forward pass; small ones share a part.
// compute() says which of them are complete while it computes the rest, so that they can be added
// up meanwhile; the first part, which has the remarks too, is complete when compute() returns.
//
// A gradient that is not finite counts as zeros. Where that turns out once parts of it have left,
// the sums are spoiled(): all ranks see it in the remarks, and add up once more what repeat() puts
// there.
//
// Determinism: ranks that have equal values and equal sums have equal values after step(). A rank
// that is lost between two calls of step() leaves the others as they were after the first one.
#pragma once

#include "actors/tables/table_store.hpp"
#include "actors/training/cached_values.hpp"
#include "actors/training/gradient_computer.hpp"
#include "base/buffer.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"
#include "storage/checkpoint.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace troupe {

class rank_model {
public:
  /// What travels with the gradients, added up like them.
  struct step_flags {
    float stop = 0;     ///< Above 0: someone wants to end here.
    float unusable = 0; ///< Slots whose gradients were not finite; they count as zeros.
    float spoiled = 0;  ///< Above 0: one of those is in the sums in part.
  };

  /// With the initial values, at clock 0. Requires: a bsp job of dense tables.
  rank_model(const job_spec& job, const trainer_factory& make, std::uint32_t rank);

  const job_spec& job() const { return job_; }
  /// Steps taken: the next gradient is of this clock.
  std::uint64_t clock() const { return clock_; }
  bool finished() const { return clock_ == clocks_; }
  /// Batches that the steps so far were made of: each of the first ones, once.
  batch_id done() const;

  /// Zeros where the clock, the last one of its pass, has fewer slots than ranks. `ready`: called
  /// with the index of each part that is complete before the end; compute() leaves it alone then.
  /// Errors: invalid_argument (what the trainer threw).
  result<void> compute(bool stop, const std::function<void(std::uint32_t part)>& ready = {});
  /// The first one is needed first by the next gradient. They stay where they are.
  const std::vector<std::span<float>>& parts() const { return parts_; }
  /// All of them.
  std::span<float> sum() { return {sum_.get(), sum_floats_}; }
  /// Of the sums of all ranks: they are of no use, see above.
  bool spoiled() const;
  /// Puts the own gradient in all parts once more.
  void repeat();
  /// Of the last gradient: its samples, and the mean loss.
  std::uint64_t samples() const { return own_.samples; }
  double loss() const { return own_.loss; }
  /// Takes the clock's step with what sum() holds. Where that is not finite nothing changes but the
  /// clock, as with servers.
  step_flags step();
  /// Whether the last step was taken without the own gradient, which was not finite, or their sum.
  bool refused() const { return refused_; }

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
  result<cached_ptr> values() const;
  gradient_listener early_listener(const std::function<void(std::uint32_t part)>& ready);
  void put_own();
  void put(std::uint32_t table);
  step_flags told() const;

  job_spec job_;
  std::uint32_t rank_;
  std::uint64_t clocks_;
  std::uint64_t clock_ = 0;
  std::shared_ptr<buffer_pool> pool_ = std::make_shared<buffer_pool>();
  std::vector<table_id> tables_;
  std::vector<partition_id> partitions_;
  std::vector<std::size_t> begins_; ///< Of each table in the sum.
  std::size_t sum_floats_ = 0;
  std::shared_ptr<float> sum_; ///< First the remarks.
  std::vector<std::span<float>> parts_;
  std::vector<std::uint32_t> part_of_; ///< Of each table.
  std::shared_ptr<table_store> store_;
  cached_ptr empty_cache_;
  gradient_computer computer_;
  // Of the last gradient:
  bool stop_ = false;
  gradient_outcome own_;
  std::vector<bool> left_; ///< By part: complete before the end.
  bool refused_ = false;
};

} // namespace troupe
