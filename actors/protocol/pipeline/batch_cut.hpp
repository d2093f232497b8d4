// Cuts a batch into micro-batches.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe {

/// Describes a micro-batch: a stretch of a batch's samples.
struct micro_stretch {
  std::size_t begin = 0; ///< First sample.
  std::size_t size = 0;
  double weight = 0; ///< Share in the batch's mean: size / samples of the batch.
};

/// Cuts a batch of `samples` into at most `micros` micro-batches. Their sizes differ by at most
/// one, and the larger ones come first. None is empty, so a small batch has fewer micro-batches.
///
/// Requires: samples >= 1, micros >= 1.
class batch_cut {
public:
  batch_cut(std::size_t samples, std::uint32_t micros);

  /// Returns the number of micro-batches.
  std::uint32_t count() const { return count_; }
  /// Requires: micro < count().
  micro_stretch operator[](std::uint32_t micro) const;

private:
  std::size_t samples_;
  std::uint32_t count_;
};

} // namespace troupe
