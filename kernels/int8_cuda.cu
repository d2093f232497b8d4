#include "kernels/int8.hpp"
#include "kernels/int8.inl.hpp"
#include "kernels/launch.inl.hpp"

#include <cassert>

namespace troupe::kernels {

namespace {

struct to_nearest {
  TROUPE_HD std::int8_t operator()(float x, float inverse, std::size_t) const {
    return detail::nearest_int8(x, inverse);
  }
};

struct to_random {
  std::uint32_t key;
  TROUPE_HD std::int8_t operator()(float x, float inverse, std::size_t i) const {
    return detail::random_int8(x, inverse, key, static_cast<std::uint32_t>(i));
  }
};

/// A block of threads converts a block of numbers, one number per thread.
template <class Round>
struct to_int8_block {
  struct shared {
    std::uint32_t tops[block_threads];
    detail::block_scale scale;
  };
  static constexpr unsigned halvings = 8;
  static_assert(block_threads == 1u << halvings && block_threads == int8_block);
  // One to load magnitudes, then the halvings to the largest, then one to write integers.
  static constexpr unsigned phases = 1 + halvings + 1;

  const float* x;
  std::size_t count;
  std::int8_t* q;
  float* scales;
  Round round;

  TROUPE_HD void operator()(unsigned phase, unsigned block, unsigned thread, shared& memory) const {
    const std::size_t i = std::size_t{block} * int8_block + thread;
    if (phase == 0) {
      memory.tops[thread] = i < count ? detail::magnitude_bits(x[i]) : 0;
    } else if (phase <= halvings) {
      const unsigned half = block_threads >> phase;
      if (thread < half && memory.tops[thread] < memory.tops[thread + half])
        memory.tops[thread] = memory.tops[thread + half];
      if (half == 1 && thread == 0) {
        memory.scale = detail::scale_of(memory.tops[0]);
        scales[block] = memory.scale.scale;
      }
    } else if (i < count) {
      const float inverse = memory.scale.inverse;
      q[i] = inverse == 0.0f ? std::int8_t{0} : round(x[i], inverse, i);
    }
  }
};

struct from_int8_body {
  const std::int8_t* q;
  const float* scales;
  float* y;
  TROUPE_HD void operator()(std::size_t i) const {
    y[i] = static_cast<float>(q[i]) * scales[i / int8_block];
  }
};

template <class Round>
void launch_to_int8(stream at, std::span<const float> x, std::span<std::int8_t> q,
                    std::span<float> scales, Round round) {
  assert(q.size() == x.size() && scales.size() == blocks_for(x.size(), int8_block));
  launch_blocks(at, blocks_for(x.size(), int8_block),
                to_int8_block<Round>{x.data(), x.size(), q.data(), scales.data(), round});
}

} // namespace

void to_int8(stream at, std::span<const float> x, std::span<std::int8_t> q,
             std::span<float> scales) {
  launch_to_int8(at, x, q, scales, to_nearest{});
}

void to_int8_stochastic(stream at, std::span<const float> x, std::uint64_t seed,
                        std::span<std::int8_t> q, std::span<float> scales) {
  launch_to_int8(at, x, q, scales, to_random{detail::random_key(seed)});
}

void from_int8(stream at, std::span<const std::int8_t> q, std::span<const float> scales,
               std::span<float> y) {
  assert(q.size() == y.size() && scales.size() == blocks_for(y.size(), int8_block));
  launch_elements(at, y.size(), from_int8_body{q.data(), scales.data(), y.data()});
}

} // namespace troupe::kernels
