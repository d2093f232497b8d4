#include "actors/training/part.hpp"

#include "serialization/channel.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe {

std::span<float> part_output::of_width(std::size_t width) {
  if (width == 0)
    throw std::invalid_argument{"an output has a width of 1 or more"};
  if (width > parcel_floats_max / std::max<std::size_t>(samples_, 1))
    throw std::invalid_argument{"an output has at most 1 GiB: use more micro-batches"};
  if (width_ != 0)
    throw std::invalid_argument{"part_output::of_width() is called twice for a micro-batch"};
  width_ = width;
  values_.assign(samples_ * width, unwritten);
  return values_;
}

std::size_t first_unwritten(std::span<const float> values) {
  const auto found = std::ranges::find_if(
    values, [](float x) { return std::bit_cast<std::uint32_t>(x) == unwritten_bits; });
  return static_cast<std::size_t>(found - values.begin());
}

} // namespace troupe
