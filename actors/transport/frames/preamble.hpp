// Encodes the preamble, the first bytes of each direction of a link. Its size is fixed, so that a
// stranger can do no harm with it:
//
//   8 bytes  "TROUPE\r\n"
//   u32      protocol version     little-endian
//   u32      0
//   u64      secret, 0: none
//
// Magic and version keep their place in all versions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::detail {

constexpr std::size_t preamble_bytes = 24;

struct preamble {
  std::uint32_t version = 0;
  std::uint64_t secret = 0;
};

std::array<std::byte, preamble_bytes> encode(const preamble& what);
/// Returns false if no preamble begins with these bytes. Requires: at most preamble_bytes bytes.
bool may_be_preamble(std::span<const std::byte> beginning);
preamble decode_preamble(std::span<const std::byte, preamble_bytes> bytes);

} // namespace troupe::detail
