// Chooses the samples of a batch: a stretch of a permutation that job seed and epoch determine.
#pragma once

#include "actors/training/trainer.hpp"
#include "serialization/job.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// Keeps the permutation of the last epoch, so that further batches of it are cheap.
class sampler {
public:
  explicit sampler(const job_spec& job);

  /// Returns the batch. Its spans are valid until the next call.
  batch at(batch_id id);

private:
  void permute(std::uint64_t epoch);

  std::uint64_t seed_;
  std::uint64_t samples_;
  std::uint64_t batch_samples_;
  std::uint64_t batches_per_epoch_;
  std::uint64_t epoch_;
  std::vector<std::uint32_t> permutation_;
};

} // namespace troupe
