#include "actors/transport/frames/fragment_reader.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace troupe::detail {

void fragment_reader::admit(const std::shared_ptr<const arena_reader>& arena) {
  admitted_ = true;
  for (frame_reader& each : frames_)
    each.admit(arena);
}

std::span<std::byte> fragment_reader::direct() {
  const auto place = present().direct();
  return place.first(std::min(place.size(), fragment_left_));
}

std::size_t fragment_reader::behind_direct(std::size_t size_max) const {
  const bool goes_on = fragment_left_ != 0 && present().body_bytes_missing() > fragment_left_;
  return goes_on ? std::min(fragment_header_bytes, size_max) : size_max;
}

void fragment_reader::advance(std::size_t size_bytes) {
  assert(size_bytes <= fragment_left_);
  fragment_left_ -= size_bytes;
  present().advance(size_bytes);
}

result<std::size_t> fragment_reader::take(std::span<const std::byte> bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && !complete()) {
    const auto rest = bytes.subspan(taken);
    if (fragment_left_ == 0) {
      const std::size_t size = std::min(rest.size(), header_.size() - header_filled_);
      std::memcpy(header_.data() + header_filled_, rest.data(), size);
      header_filled_ += size;
      taken += size;
      if (header_filled_ < header_.size())
        break;
      if (const auto begun = begin_fragment(); !begun)
        return begun.error();
      continue;
    }
    const auto went = present().take(rest.first(std::min(rest.size(), fragment_left_)));
    if (!went)
      return went;
    fragment_left_ -= *went;
    taken += *went;
  }
  return taken;
}

/// Starts the fragment whose header is complete.
result<void> fragment_reader::begin_fragment() {
  header_filled_ = 0;
  const auto header = decode_fragment_header(header_);
  if (!header)
    return header.error();
  if (!admitted_ && (header->length == 0 || header->traffic != traffic_class::control))
    return {errc::malformed, "something else before the hello"};
  arena_mapped_ = arena_mapped_ || header->arena_mapped;
  if (header->length == 0)
    return {};
  traffic_ = header->traffic;
  fragment_left_ = header->length;
  return {};
}

} // namespace troupe::detail
