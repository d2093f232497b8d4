#include "actors/transport/frames/preamble.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace troupe::detail {

namespace {

constexpr char magic_text[] = {'T', 'R', 'O', 'U', 'P', 'E', '\r', '\n'};

/// Layout on the wire.
struct preamble_layout {
  std::array<char, sizeof magic_text> magic;
  std::uint32_t version;
  std::uint32_t zero;
  std::uint64_t secret;
};
static_assert(sizeof(preamble_layout) == preamble_bytes);
static_assert(std::endian::native == std::endian::little);

} // namespace

std::array<std::byte, preamble_bytes> encode(const preamble& what) {
  return std::bit_cast<std::array<std::byte, preamble_bytes>>(
    preamble_layout{std::to_array(magic_text), what.version, 0, what.secret});
}

bool may_be_preamble(std::span<const std::byte> beginning) {
  return std::memcmp(beginning.data(), magic_text, std::min(beginning.size(), sizeof magic_text))
         == 0;
}

preamble decode_preamble(std::span<const std::byte, preamble_bytes> bytes) {
  preamble_layout from;
  std::memcpy(&from, bytes.data(), sizeof from);
  return {from.version, from.secret};
}

} // namespace troupe::detail
