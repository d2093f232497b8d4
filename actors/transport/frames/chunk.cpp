#include "actors/transport/frames/chunk.hpp"

#include <bit>
#include <cstring>

namespace troupe::detail {

namespace {

/// Layout on the wire.
struct chunk_header_layout {
  std::uint32_t length;
  std::uint8_t traffic;
  std::uint8_t flags;
  std::uint16_t zero;
};
static_assert(sizeof(chunk_header_layout) == chunk_header_bytes);
static_assert(std::endian::native == std::endian::little);

constexpr std::uint8_t arena_mapped_flag = 1;

} // namespace

std::array<std::byte, chunk_header_bytes> encode(const chunk_header& what) {
  return std::bit_cast<std::array<std::byte, chunk_header_bytes>>(
    chunk_header_layout{what.length, static_cast<std::uint8_t>(what.traffic),
                        what.arena_mapped ? arena_mapped_flag : std::uint8_t{0}, 0});
}

result<chunk_header> decode_chunk_header(std::span<const std::byte, chunk_header_bytes> bytes) {
  chunk_header_layout from;
  std::memcpy(&from, bytes.data(), sizeof from);
  if (from.length > chunk_bytes_max || from.traffic >= traffic_classes
      || from.flags > (from.length == 0 ? arena_mapped_flag : 0) || from.zero != 0)
    return {errc::malformed, "not the beginning of a chunk"};
  return chunk_header{from.length, static_cast<traffic_class>(from.traffic), from.flags != 0};
}

} // namespace troupe::detail
