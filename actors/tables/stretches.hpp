// Finds the parts of a block that a step changes, if it does not change the whole block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::detail {

/// Elements [first, end) of a block.
struct stretch {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

/// Returns the stretches that the shares of a block cover; only shares that overlap are joined.
template <class Shares>
std::vector<stretch> stretches_of(const Shares& shares) {
  std::vector<stretch> all;
  for (const auto& x : shares)
    all.push_back({x.first, x.first + x.count});
  std::sort(all.begin(), all.end(),
            [](const stretch& a, const stretch& b) { return a.first < b.first; });
  std::vector<stretch> joined;
  for (const stretch& x : all) {
    if (!joined.empty() && x.first < joined.back().end)
      joined.back().end = std::max(joined.back().end, x.end);
    else
      joined.push_back(x);
  }
  return joined;
}

/// The optimiser state of some elements of a block, as the kernels expect it: m of all, then v of
/// all.
class state_of_stretch {
public:
  state_of_stretch(float* state, std::size_t per_element, std::uint64_t block_elements, stretch at)
      : state_(state), per_element_(per_element), block_elements_(block_elements), at_(at),
        count_(at.end - at.first), copy_(per_element * count_) {
    for (std::size_t i = 0; i < per_element_; ++i)
      std::copy_n(row(i), count_, copy_.data() + i * count_);
  }

  std::span<float> values() { return copy_; }

  void write_back() {
    for (std::size_t i = 0; i < per_element_; ++i)
      std::copy_n(copy_.data() + i * count_, count_, row(i));
  }

private:
  float* row(std::size_t i) { return state_ + i * block_elements_ + at_.first; }

  float* state_;
  std::size_t per_element_;
  std::uint64_t block_elements_;
  stretch at_;
  std::size_t count_;
  std::vector<float> copy_;
};

} // namespace troupe::detail
