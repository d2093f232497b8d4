// Encodes fragments, a link's bytes after the preamble; each carries a piece of one class's frames.
//
//   u32  length     of the piece, at most 256 KiB; 0: a sign of life
//   u8   class      traffic_class
//   u8   flags      1: the sender has mapped the receiver's arena (only if length is 0)
//   u16  0
//        the piece: frames of the class follow each other, and are cut anywhere
//
// A higher class goes first between two fragments. So a status message waits for the system's
// buffer and 256 KiB more, not for a tensor.
// A frame is as in wire.hpp, except for the last word of its prefix. It is 0 if the tensors follow,
// else their place in the sender's arena (arena_layout.hpp).
#pragma once

#include "actors/transport/frames/traffic_class.hpp"
#include "base/error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::detail {

constexpr std::size_t fragment_header_bytes = 8;
constexpr std::size_t fragment_bytes_max = std::size_t{256} << 10;

struct fragment_header {
  std::uint32_t length = 0;
  traffic_class traffic = traffic_class::control;
  bool arena_mapped = false;

  bool operator==(const fragment_header&) const = default;
};

std::array<std::byte, fragment_header_bytes> encode(const fragment_header& what);
/// Errors: malformed.
result<fragment_header>
decode_fragment_header(std::span<const std::byte, fragment_header_bytes> bytes);

} // namespace troupe::detail
