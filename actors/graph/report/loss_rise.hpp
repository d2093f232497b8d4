// Notices that the training loss rises from epoch to epoch.
#pragma once

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

} // namespace troupe
