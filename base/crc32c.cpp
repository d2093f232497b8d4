// The CRC instruction takes 3 cycles, but a new one can start in each. Therefore long inputs are
// cut into three lanes, which are summed side by side and then joined: crc(a + b) = shift(crc(a),
// |b|) ^ crc(b). `shift` appends zero bytes. It is linear, hence four tables of 256 entries for a
// fixed |b|.
#include "base/crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
  #include <nmmintrin.h>
#endif

namespace troupe::storage::detail {

namespace {

using byte_table = std::array<std::uint32_t, 256>;

constexpr byte_table make_byte_table() {
  byte_table table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    auto x = i;
    for (int bit = 0; bit < 8; ++bit)
      x = (x >> 1) ^ ((x & 1) ? 0x82F63B78u : 0u);
    table[i] = x;
  }
  return table;
}

constexpr byte_table step_table = make_byte_table();

#if defined(__x86_64__)

/// Bytes of one lane. Three of them are 12 KiB: they stay in the first-level cache.
constexpr std::size_t lane_bytes = 4096;

using shift_tables = std::array<byte_table, 4>;

/// Returns the sum after `lane_bytes` more zero bytes, split by the sum's four bytes.
shift_tables make_shift_tables() {
  std::array<std::uint32_t, 32> image{};
  for (int bit = 0; bit < 32; ++bit) {
    auto x = std::uint32_t{1} << bit;
    for (std::size_t i = 0; i < lane_bytes; ++i)
      x = (x >> 8) ^ step_table[x & 0xff];
    image[static_cast<std::size_t>(bit)] = x;
  }
  shift_tables tables{};
  for (std::size_t position = 0; position < 4; ++position)
    for (std::size_t value = 0; value < 256; ++value)
      for (std::size_t bit = 0; bit < 8; ++bit)
        if (value & (std::size_t{1} << bit))
          tables[position][value] ^= image[position * 8 + bit];
  return tables;
}

std::uint32_t shift(const shift_tables& tables, std::uint64_t sum) {
  return tables[0][sum & 0xff] ^ tables[1][(sum >> 8) & 0xff] ^ tables[2][(sum >> 16) & 0xff]
         ^ tables[3][(sum >> 24) & 0xff];
}

std::uint64_t load(const std::byte* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(std::span<const std::byte> bytes,
                                                             std::uint32_t previous) {
  static const auto tables = make_shift_tables();
  const auto* at = bytes.data();
  auto left = bytes.size();
  std::uint64_t a = ~previous;
  while (left >= 3 * lane_bytes) {
    std::uint64_t b = 0;
    std::uint64_t c = 0;
    for (std::size_t i = 0; i < lane_bytes; i += 8) {
      a = _mm_crc32_u64(a, load(at + i));
      b = _mm_crc32_u64(b, load(at + lane_bytes + i));
      c = _mm_crc32_u64(c, load(at + 2 * lane_bytes + i));
    }
    a = shift(tables, shift(tables, a) ^ b) ^ c;
    at += 3 * lane_bytes;
    left -= 3 * lane_bytes;
  }
  for (; left >= 8; at += 8, left -= 8)
    a = _mm_crc32_u64(a, load(at));
  auto sum = static_cast<std::uint32_t>(a);
  for (; left > 0; ++at, --left)
    sum = _mm_crc32_u8(sum, static_cast<unsigned char>(*at));
  return ~sum;
}

#endif

} // namespace

std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t previous) {
  auto sum = ~previous;
  for (const auto byte : bytes)
    sum = (sum >> 8) ^ step_table[(sum ^ static_cast<std::uint32_t>(byte)) & 0xff];
  return ~sum;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2"))
    return crc32c_sse42(bytes, previous);
#endif
  return crc32c_portable(bytes, previous);
}

} // namespace troupe::storage::detail
