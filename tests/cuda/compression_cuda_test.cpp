// Checks that compression to half floats, 8 bits and one bit on a stream gives the CPU's bytes.
#include "kernels/half.hpp"
#include "kernels/int8.hpp"
#include "kernels/onebit.hpp"
#include "tests/cuda/same_bytes.hpp"
#include "tests/cuda/under_test.hpp"
#include "tests/numbers.hpp"

#include <bit>
#include <limits>
#include <numeric>

namespace troupe::test::compression_cuda_test {

namespace {

using halves = std::vector<std::uint16_t>;
using bytes = std::vector<std::int8_t>;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Returns floats of all exponents, ties between 16-bit neighbours and values beside them, NaN and
/// infinities.
std::vector<float> of_every_kind(std::size_t count) {
  numbers random{count};
  auto all = random.extremes(count);
  for (std::size_t i = 0; i + 4 < count; i += 5) {
    const auto upper = static_cast<std::uint32_t>(random.next() & 0xffff0000);
    all[i] = std::bit_cast<float>(upper | 0x8000); // A tie of bf16.
    all[i + 1] = std::bit_cast<float>(upper | 0x8001);
    all[i + 2] = std::bit_cast<float>((upper & 0xbfffffff) | 0x1000); // A tie of fp16.
    all[i + 3] = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
  }
  if (count > 3)
    all[0] = infinity, all[1] = -infinity, all[2] = nan, all[3] = -0.0f;
  return all;
}

/// Returns blocks of 256 that cycle through six kinds: usual numbers, zeros, the largest floats,
/// denormals, a NaN, an infinity.
std::vector<float> blocks_of_every_kind(std::size_t count) {
  numbers random{count};
  auto all = random.units(count);
  for (std::size_t i = 0; i < count; ++i)
    switch (i / kernels::int8_block % 6) {
    case 1: all[i] = 0.0f; break;
    case 2: all[i] *= std::numeric_limits<float>::max(); break;
    case 3: all[i] *= std::numeric_limits<float>::min(); break;
    case 4: all[i] = i % 256 == 200 ? nan : all[i]; break;
    case 5: all[i] = i % 256 == 255 ? -infinity : all[i]; break;
    default: break;
    }
  if (count > 2)
    all[0] = 127.0f, all[1] = 0.5f, all[2] = 1.5f; // These are ties: the scale is 1.
  return all;
}

} // namespace

TEST_CASE("devices: floats in 16 bits are those of the CPU") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  for (const std::size_t count : device_sizes) {
    const auto values = of_every_kind(count);
    const auto x = at.upload(values);
    const auto y = at.upload(halves(count, 77));
    halves wanted(count);
    kernels::to_fp16(values, wanted);
    kernels::to_fp16(at.stream(), x.span(), y.span());
    CHECK(at.download(y) == wanted);
    kernels::to_bf16(values, wanted);
    kernels::to_bf16(at.stream(), x.span(), y.span());
    CHECK(at.download(y) == wanted);
  }
}

TEST_CASE("devices: each of the 65536 half floats becomes the CPU's float") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  halves every(65536);
  std::iota(every.begin(), every.end(), std::uint16_t{0});
  const auto x = at.upload(every);
  const auto y = at.upload(std::vector<float>(every.size(), 77.0f));
  std::vector<float> wanted(every.size());
  kernels::from_fp16(every, wanted);
  kernels::from_fp16(at.stream(), x.span(), y.span());
  CHECK(same_bytes(at.download(y), wanted));
  kernels::from_bf16(every, wanted);
  kernels::from_bf16(at.stream(), x.span(), y.span());
  CHECK(same_bytes(at.download(y), wanted));
}

TEST_CASE("devices: floats in 8 bits are those of the CPU, and so are they back") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  for (const bool stochastic : {false, true})
    for (const std::size_t count : device_sizes) {
      const auto values = blocks_of_every_kind(count);
      const std::size_t blocks = (count + kernels::int8_block - 1) / kernels::int8_block;
      bytes wanted(count);
      std::vector<float> scales_wanted(blocks), back_wanted(count);
      const auto x = at.upload(values), back = at.upload(std::vector<float>(count, 77.0f));
      const auto q = at.upload(bytes(count, 77));
      const auto scales = at.upload(std::vector<float>(blocks, 77.0f));
      if (stochastic) {
        kernels::to_int8_stochastic(values, 5, wanted, scales_wanted);
        kernels::to_int8_stochastic(at.stream(), x.span(), 5, q.span(), scales.span());
      } else {
        kernels::to_int8(values, wanted, scales_wanted);
        kernels::to_int8(at.stream(), x.span(), q.span(), scales.span());
      }
      kernels::from_int8(wanted, scales_wanted, back_wanted);
      kernels::from_int8(at.stream(), q.span(), scales.span(), back.span());
      CHECK(at.download(q) == wanted);
      CHECK(same_bytes(at.download(scales), scales_wanted));
      CHECK(same_bytes(at.download(back), back_wanted));
    }
}

TEST_CASE("devices: one bit and two means are those of the CPU, step after step") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  for (const std::size_t count : {0, 1, 3, 7, 8, 9, 1023, 1024, 1025, 4099, 100'003}) {
    CAPTURE(count);
    const std::size_t blocks = (count + kernels::onebit_block - 1) / kernels::onebit_block;
    numbers random{count};
    std::vector<float> residual_wanted(count), means_wanted(2 * blocks), back_wanted(count);
    std::vector<std::uint8_t> wanted((count + 7) / 8);
    const auto residual = at.upload(residual_wanted), back = at.upload(back_wanted);
    const auto means = at.upload(std::vector<float>(2 * blocks, 77.0f));
    const auto bits = at.upload(std::vector<std::uint8_t>(wanted.size(), 77));
    for (int step = 0; step < 3; ++step) {
      auto values = step == 1 ? random.extremes(count) : random.units(count);
      for (std::size_t i = 0; i < std::min<std::size_t>(count, 1024) && step == 0; ++i)
        values[i] = i % 3 == 0 ? 0.0f : i % 3 == 1 ? -0.0f : 0x1p-149f; // No value lies below zero.
      const auto x = at.upload(values);
      kernels::to_onebit(values, residual_wanted, wanted, means_wanted);
      kernels::to_onebit(at.stream(), x.span(), residual.span(), bits.span(), means.span());
      kernels::from_onebit(wanted, means_wanted, back_wanted);
      kernels::from_onebit(at.stream(), bits.span(), means.span(), back.span());
      CHECK(at.download(bits) == wanted);
      CHECK(same_bytes(at.download(means), means_wanted));
      CHECK(same_bytes(at.download(residual), residual_wanted));
      CHECK(same_bytes(at.download(back), back_wanted));
    }
  }
}

} // namespace troupe::test::compression_cuda_test
