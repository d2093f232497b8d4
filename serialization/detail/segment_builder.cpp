// Allocates the memory of one-segment messages.
#include "serialization/detail/segment_builder.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe::wire::detail {

namespace {

/// Smallest size of a further segment, used when the guess was too small.
constexpr unsigned further_words_min = 8192;

} // namespace

segment_builder::segment_builder(std::size_t prefix_bytes, std::size_t guessed_words)
    : prefix_bytes_(prefix_bytes), bytes_(prefix_bytes + guessed_words * sizeof(capnp::word)) {
  assert(prefix_bytes % sizeof(capnp::word) == 0);
}

kj::ArrayPtr<capnp::word> segment_builder::allocateSegment(unsigned words_min) {
  const auto guessed_words = (bytes_.size() - prefix_bytes_) / sizeof(capnp::word);
  if (!std::exchange(first_given_, true) && words_min <= guessed_words)
    return {reinterpret_cast<capnp::word*>(bytes_.data() + prefix_bytes_), guessed_words};
  const auto words = std::max(words_min, further_words_min);
  further_.push_back(std::make_unique<std::uint64_t[]>(words));
  return {reinterpret_cast<capnp::word*>(further_.back().get()), words};
}

std::vector<std::byte> segment_builder::take() {
  const auto segments = getSegmentsForOutput();
  assert(segments.size() == 1 && further_.empty());
  bytes_.resize(prefix_bytes_ + segments[0].size() * sizeof(capnp::word));
  return std::move(bytes_);
}

} // namespace troupe::wire::detail
