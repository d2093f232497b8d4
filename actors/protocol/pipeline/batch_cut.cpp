#include "actors/protocol/pipeline/batch_cut.hpp"

#include <algorithm>
#include <cassert>

namespace troupe {

batch_cut::batch_cut(std::size_t samples, std::uint32_t micros)
    : samples_(samples),
      count_(static_cast<std::uint32_t>(std::min<std::size_t>(samples, micros))) {
  assert(samples > 0 && micros > 0);
}

micro_stretch batch_cut::operator[](std::uint32_t micro) const {
  assert(micro < count_);
  const std::size_t size = samples_ / count_, larger = samples_ % count_;
  const micro_stretch found{micro * size + std::min<std::size_t>(micro, larger),
                            size + (micro < larger ? 1 : 0)};
  return {found.begin, found.size, static_cast<double>(found.size) / static_cast<double>(samples_)};
}

} // namespace troupe
