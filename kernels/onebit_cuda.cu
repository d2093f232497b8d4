#include "kernels/launch.inl.hpp"
#include "kernels/onebit.hpp"
#include "kernels/onebit.inl.hpp"

#include <cassert>

namespace troupe::kernels {

namespace {

/// A block of threads converts a block of numbers. Sums run over the CPU's 16 lanes: 16 threads sum
/// the numbers below zero, 16 sum the rest.
struct to_onebit_block {
  static constexpr unsigned lanes = 16, packers = onebit_block / 8;
  static constexpr unsigned phases = 4;
  static_assert(2 * lanes + packers <= block_threads && onebit_block % block_threads == 0);
  struct shared {
    float v[onebit_block];
    double sums[2][lanes];
    std::uint32_t counts[2][lanes];
    float means[2];
  };

  const float* x;
  float* residual;
  std::uint8_t* bits;
  float* means;
  std::size_t count;

  TROUPE_HD static void add_lane(unsigned side, unsigned lane, unsigned here, shared& memory) {
    double sum = 0.0;
    std::uint32_t counted = 0;
    for (unsigned i = lane; i < here; i += lanes) {
      const float v = memory.v[i];
      if ((v < 0.0f) == (side == 0))
        sum += double{v};
      counted += detail::bit_of(v) == side ? 1 : 0;
    }
    memory.sums[side][lane] = sum;
    memory.counts[side][lane] = counted;
  }

  TROUPE_HD static void add_lanes(unsigned side, shared& memory) {
    for (unsigned half = lanes / 2; half > 0; half /= 2)
      for (unsigned k = 0; k < half; ++k) {
        memory.sums[side][k] += memory.sums[side][k + half];
        memory.counts[side][k] += memory.counts[side][k + half];
      }
    memory.means[side] = detail::mean(memory.sums[side][0], memory.counts[side][0]);
  }

  TROUPE_HD static std::uint8_t packed(unsigned first, unsigned here, const shared& memory) {
    std::uint32_t byte = 0;
    for (unsigned k = 0; k < 8 && first + k < here; ++k)
      byte |= detail::bit_of(memory.v[first + k]) << k;
    return static_cast<std::uint8_t>(byte);
  }

  TROUPE_HD void operator()(unsigned phase, unsigned block, unsigned thread, shared& memory) const {
    const std::size_t first = std::size_t{block} * onebit_block;
    const auto here =
      static_cast<unsigned>(count - first < onebit_block ? count - first : onebit_block);
    if (phase == 0) {
      for (unsigned i = thread; i < here; i += block_threads)
        memory.v[i] = residual[first + i] + x[first + i];
    } else if (phase == 1) {
      const unsigned packer = thread - (block_threads - packers);
      if (thread < 2 * lanes)
        add_lane(thread / lanes, thread % lanes, here, memory);
      else if (packer < packers && packer * 8 < here)
        bits[first / 8 + packer] = packed(packer * 8, here, memory);
    } else if (phase == 2) {
      if (thread < 2) {
        add_lanes(thread, memory);
        means[2 * std::size_t{block} + thread] = memory.means[thread];
      }
    } else {
      for (unsigned i = thread; i < here; i += block_threads)
        residual[first + i] = memory.v[i] - memory.means[detail::bit_of(memory.v[i])];
    }
  }
};

struct from_onebit_body {
  const std::uint8_t* bits;
  const float* means;
  float* y;
  TROUPE_HD void operator()(std::size_t i) const {
    y[i] = means[i / onebit_block * 2 + (bits[i / 8] >> (i % 8) & 1u)];
  }
};

[[maybe_unused]] bool fits(std::size_t count, std::span<const std::uint8_t> bits,
                           std::span<const float> means) {
  return bits.size() == (count + 7) / 8
         && means.size() == 2 * ((count + onebit_block - 1) / onebit_block);
}

} // namespace

void to_onebit(stream at, std::span<const float> x, std::span<float> residual,
               std::span<std::uint8_t> bits, std::span<float> means) {
  assert(residual.size() == x.size() && fits(x.size(), bits, means));
  launch_blocks(at, blocks_for(x.size(), onebit_block),
                to_onebit_block{x.data(), residual.data(), bits.data(), means.data(), x.size()});
}

void from_onebit(stream at, std::span<const std::uint8_t> bits, std::span<const float> means,
                 std::span<float> y) {
  assert(fits(y.size(), bits, means));
  launch_elements(at, y.size(), from_onebit_body{bits.data(), means.data(), y.data()});
}

} // namespace troupe::kernels
