// Fuzzes unpack() with any bytes and pack() with any floats. Input: encoding, count of elements
// (u16), whether 65,000 more follow, bytes.
#include "actors/tables/packing.hpp"
#include "tests/serialization/fuzz_main.hpp"

#include <array>
#include <bit>
#include <cstdlib>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::size_t head_bytes = 4;
constexpr std::uint32_t count_end = 1200;   ///< Most inputs are short, so that many are tried.
constexpr std::uint32_t many_more = 65'000; ///< With these, topk has two stretches.
constexpr std::uint8_t is_many = 7;

/// A buffer aligned as a link's payload is.
struct aligned_bytes {
  explicit aligned_bytes(std::size_t size) : words(size / 8 + 1), size_bytes(size) {}
  std::span<std::byte> span() { return std::as_writable_bytes(std::span{words}).first(size_bytes); }
  std::vector<std::uint64_t> words;
  std::size_t size_bytes;
};

compression compression_of(random_source& random) {
  const auto how = static_cast<encoding>(1 + random.below(6));
  const bool has_fraction = how == encoding::topk || how == encoding::randomk;
  const std::array fractions{1e-9, 0.01, 0.3, 1.0};
  return {how, has_fraction ? fractions[random.below(fractions.size())] : 0};
}

/// Checks that packed values can be unpacked. With a residual, topk and randomk lose no value.
void check_round_trip(random_source& random, std::span<const float> x) {
  const auto how = compression_of(random);
  std::vector<float> residual(how.keeps_residual() ? x.size() : 0);
  aligned_bytes packed{packed_bytes(how, x.size())};
  const std::uint64_t seed = random.next();
  pack(how, x, residual, &seed, packed.span());
  std::vector<float> y(x.size());
  if (!unpack(how.how, packed.span(), y))
    std::abort();
  if (how.how == encoding::topk || how.how == encoding::randomk)
    for (std::size_t i = 0; i < x.size(); ++i)
      if (x[i] == x[i] && y[i] + residual[i] != x[i])
        std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < head_bytes)
    return 0;
  const std::uint32_t count =
    (data[1] | data[2] << 8) % count_end + (data[3] == is_many ? many_more : 0);
  const auto bytes = std::as_bytes(std::span{data + head_bytes, size - head_bytes});
  aligned_bytes from{bytes.size()};
  std::ranges::copy(bytes, from.span().begin());
  std::vector<float> y(count);
  const bool unpacked = bool{unpack(static_cast<encoding>(data[0] % 8), from.span(), y)};
  random_source random{data[0] * 2654435761u + size};
  if (unpacked)
    check_round_trip(random, y);
  std::vector<float> floats(bytes.size() / sizeof(float));
  if (!floats.empty())
    std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  check_round_trip(random, floats);
  return 0;
}

#ifndef TROUPE_FUZZ_REPLAY
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return mutate_or_make(data, size, max_size, seed, [](random_source& random) {
    const auto how = compression_of(random);
    const auto few = static_cast<std::uint32_t>(random.below(count_end));
    const bool many = random.below(512) == 0;
    const auto count = few + (many ? many_more : 0);
    std::vector<float> x(count), residual(how.keeps_residual() ? count : 0);
    for (auto& each : x)
      each = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
    aligned_bytes packed{packed_bytes(how, count)};
    const std::uint64_t drawn = random.next();
    pack(how, x, residual, &drawn, packed.span());
    std::vector<std::byte> made{static_cast<std::byte>(how.how), std::byte(few & 255),
                                std::byte(few >> 8), std::byte{many ? is_many : std::uint8_t{0}}};
    made.insert(made.end(), packed.span().begin(), packed.span().end());
    return made;
  });
}
#endif
