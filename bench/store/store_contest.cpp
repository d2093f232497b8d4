#include "bench/store/store_contest.hpp"

#include <algorithm>

namespace troupe::bench {

gradients::gradients(const store_load& what) : floats_(what.bytes / sizeof(float)) {
  // Each open request has its own gradient, up to the number that a worker computes ahead.
  constexpr std::size_t buffers_max = 8;
  for (std::size_t i = 0; i < std::min(what.window, buffers_max); ++i) {
    buffers_.push_back(pool_.floats(floats_));
    std::fill_n(buffers_.back().get(), floats_, static_cast<float>(i + 1));
  }
}

std::shared_ptr<const float> gradients::fresh() {
  auto made = pool_.floats(floats_);
  std::fill_n(made.get(), floats_, 1.0f);
  return made;
}

} // namespace troupe::bench
