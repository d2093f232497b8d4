#include "actors/training/part.hpp"

#include "kernels/vector_ops.hpp"
#include "serialization/channel.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
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
  values_.resize(samples_ * width);
  mark_unwritten(values_);
  return values_;
}

void mark_unwritten(std::span<float> values) {
  if (!values.empty())
    std::memset(values.data(), 0xff, values.size_bytes());
}

std::size_t first_unwritten(std::span<const float> values) {
  std::size_t at = 0;
  while (true) {
    at += kernels::first_non_finite(values.subspan(at));
    if (at == values.size() || std::bit_cast<std::uint32_t>(values[at]) == unwritten_bits)
      return at;
    ++at;
  }
}

} // namespace troupe
