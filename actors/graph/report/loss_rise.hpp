// Notices that the training loss rises from epoch to epoch.
#pragma once

#include "fmt/format.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

/// Compares the mean losses of epochs. A plain state machine.
///
/// Invariants:
/// (1) look() returns at most one line.
/// (2) the line's mean is above `ratio` times the lowest one so far, and above that of the first
///     epoch: a loss that only fluctuates makes no line.
class loss_rise {
public:
  /// Takes the losses of all batches so far: their sum and their number. Returns the line that is
  /// due. An epoch ends as soon as `batches_per_epoch` more losses are there.
  std::optional<std::string> look(double sum, std::uint64_t count, std::uint64_t batches_per_epoch);

private:
  static constexpr double ratio = 1.5;

  double begin_sum_ = 0; ///< Sum and number of losses when the epoch began.
  std::uint64_t begin_count_ = 0;
  std::optional<double> first_;
  double lowest_ = 0;
  bool is_told_ = false;
};

inline std::optional<std::string> loss_rise::look(double sum, std::uint64_t count,
                                                  std::uint64_t batches_per_epoch) {
  if (is_told_ || count <= begin_count_ || count - begin_count_ < batches_per_epoch)
    return std::nullopt;
  const double mean = (sum - begin_sum_) / static_cast<double>(count - begin_count_);
  begin_sum_ = sum;
  begin_count_ = count;
  if (!first_) {
    first_ = lowest_ = mean;
    return std::nullopt;
  }
  // A loss that is not finite ends the job in another way.
  is_told_ = std::isfinite(mean) && lowest_ > 0 && mean > ratio * lowest_ && mean > *first_;
  if (is_told_)
    return fmt::format(
      "the training loss rose from {:.4g} to {:.4g}, each the mean of an epoch: the "
      "rate (--lr) may be too high",
      lowest_, mean);
  lowest_ = std::min(lowest_, mean);
  return std::nullopt;
}

} // namespace troupe
