// Which samples a batch consists of: a stretch of a permutation that job seed and pass determine.
#pragma once

#include "actors/training/trainer.hpp"
#include "serialization/job.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// Keeps the permutation of the pass it was asked for last, so that neighbours are cheap.
class sampler {
public:
  explicit sampler(const job_spec& job);

  /// The spans of the result are valid until the next call.
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
