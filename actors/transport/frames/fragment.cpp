#include "actors/transport/frames/fragment.hpp"

#include <bit>
#include <cstring>

namespace troupe::detail {

namespace {

/// Layout on the wire.
struct fragment_header_layout {
  std::uint32_t length;
  std::uint8_t traffic;
  std::uint8_t flags;
  std::uint16_t zero;
};
static_assert(sizeof(fragment_header_layout) == fragment_header_bytes);
static_assert(std::endian::native == std::endian::little);

constexpr std::uint8_t arena_mapped_flag = 1;

} // namespace

std::array<std::byte, fragment_header_bytes> encode(const fragment_header& what) {
  return std::bit_cast<std::array<std::byte, fragment_header_bytes>>(
    fragment_header_layout{what.length, static_cast<std::uint8_t>(what.traffic),
                           what.arena_mapped ? arena_mapped_flag : std::uint8_t{0}, 0});
}

result<fragment_header>
decode_fragment_header(std::span<const std::byte, fragment_header_bytes> bytes) {
  fragment_header_layout from;
  std::memcpy(&from, bytes.data(), sizeof from);
  if (from.length > fragment_bytes_max || from.traffic >= traffic_classes
      || from.flags > (from.length == 0 ? arena_mapped_flag : 0) || from.zero != 0)
    return {errc::malformed, "not the beginning of a fragment"};
  return fragment_header{from.length, static_cast<traffic_class>(from.traffic), from.flags != 0};
}

} // namespace troupe::detail
