#include "actors/graph/report/loss_rise.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <cmath>

namespace troupe {

std::optional<std::string> loss_rise::look(double sum, std::uint64_t count,
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
