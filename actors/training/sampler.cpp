#include "actors/training/sampler.hpp"

#include "base/splitmix64.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>
#include <utility>

namespace troupe {

namespace {

constexpr std::uint64_t no_epoch = std::numeric_limits<std::uint64_t>::max();

/// Takes one step of splitmix64: a bijection that spreads neighbours.
std::uint64_t spread(std::uint64_t x) { return splitmix64{x}.next(); }

/// Draws random integers. std::uniform_int_distribution differs between libraries, and workers must
/// agree.
class bounded_random {
public:
  explicit bounded_random(std::uint64_t seed) : state_(seed) {}

  /// Returns a number in [0, bound), without bias: the high half of a product. Products that would
  /// make some results likelier are drawn again (Lemire 2019).
  std::uint32_t below(std::uint32_t bound) {
    std::uint64_t product = draw() * std::uint64_t{bound};
    if (static_cast<std::uint32_t>(product) < bound)
      while (static_cast<std::uint32_t>(product) < (0u - bound) % bound)
        product = draw() * std::uint64_t{bound};
    return static_cast<std::uint32_t>(product >> 32);
  }

private:
  std::uint64_t draw() { return spread(state_++) >> 32; }

  std::uint64_t state_;
};

} // namespace

sampler::sampler(const job_spec& job)
    : seed_(job.seed), samples_(job.samples), batch_samples_(job.batch_samples),
      batches_per_epoch_(job.batches_per_epoch()), epoch_(no_epoch) {
  assert(samples_ <= std::numeric_limits<std::uint32_t>::max());
}

batch sampler::at(batch_id id) {
  batch result;
  result.id = id;
  result.epoch = id.value / batches_per_epoch_;
  result.index = id.value % batches_per_epoch_;
  result.seed = spread(spread(seed_) ^ id.value);
  if (result.epoch != epoch_)
    permute(result.epoch);
  const std::uint64_t first = result.index * batch_samples_;
  const std::uint64_t count = std::min(batch_samples_, samples_ - first);
  result.samples = std::span(permutation_).subspan(first, count);
  return result;
}

void sampler::permute(std::uint64_t epoch) {
  permutation_.resize(samples_);
  std::iota(permutation_.begin(), permutation_.end(), 0u);
  // Differs from the batches' seeds, which mix a small number in too.
  bounded_random random(spread(spread(seed_ ^ 0x5eed0fa11ba55e5u) ^ epoch));
  for (std::size_t i = permutation_.size(); i > 1; --i)
    std::swap(permutation_[i - 1], permutation_[random.below(static_cast<std::uint32_t>(i))]);
  epoch_ = epoch;
}

} // namespace troupe
