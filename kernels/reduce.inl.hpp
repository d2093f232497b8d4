// Runs a reduction on a stream in two launches: blocks combine stretches of the elements into
// partial values, then one block combines those. Private to this folder's *_cuda.cu.
//
// Determinism: the order of combinations depends only on the number of elements. So results are
// bit-identical from run to run, on every device and on emulated streams.
#pragma once

#include "kernels/launch.inl.hpp"
#include "kernels/reduction.hpp"

#include <algorithm>

namespace troupe::kernels::detail {

/// Load has: value_type; value_type none(), which is neutral to combine(); operator()(size_t i);
/// and value_type combine(value_type, value_type).
template <class Load>
struct reduce_block {
  using value_type = typename Load::value_type;
  struct shared {
    value_type values[block_threads];
  };
  // One phase to load, then one for each halving of the block.
  static constexpr unsigned phases = 9;
  static_assert(block_threads == 1u << (phases - 1));
  static constexpr std::size_t loads_at_once = 8;

  Load load;
  std::size_t count;
  unsigned blocks;
  value_type* to; ///< One value for each block.

  TROUPE_HD void operator()(unsigned phase, unsigned block, unsigned thread, shared& memory) const {
    if (phase == 0) {
      value_type value = load.none();
      const std::size_t stride = std::size_t{blocks} * block_threads;
      std::size_t i = std::size_t{block} * block_threads + thread;
      for (; i + (loads_at_once - 1) * stride < count; i += loads_at_once * stride) {
        value_type next[loads_at_once]; // So that all loads begin before one of them is used.
        for (std::size_t k = 0; k < loads_at_once; ++k)
          next[k] = load(i + k * stride);
        for (const value_type& x : next)
          value = load.combine(value, x);
      }
      for (; i < count; i += stride)
        value = load.combine(value, load(i));
      memory.values[thread] = value;
      return;
    }
    const unsigned half = block_threads >> phase;
    if (thread < half)
      memory.values[thread] = load.combine(memory.values[thread], memory.values[thread + half]);
    if (half == 1 && thread == 0)
      to[block] = memory.values[0];
  }
};

/// Applies the reduction to the partial values of the blocks.
template <class Load>
struct of_partials {
  using value_type = typename Load::value_type;
  Load load;
  const value_type* partials;

  TROUPE_HD value_type none() const { return load.none(); }
  TROUPE_HD value_type operator()(std::size_t i) const { return partials[i]; }
  TROUPE_HD value_type combine(value_type a, value_type b) const { return load.combine(a, b); }
};

/// Elements of a thread until the number of blocks reaches partials_max.
constexpr std::size_t reduced_elements = 8;

/// `result` may be `partials` itself: the last block reads all of them before it writes.
template <class Load>
void launch_reduce(stream at, std::size_t count, const Load& load,
                   typename Load::value_type* partials, typename Load::value_type* result) {
  const auto blocks = static_cast<unsigned>(
    std::min<std::size_t>(partials_max, (count + block_threads * reduced_elements - 1)
                                          / (block_threads * reduced_elements)));
  launch_blocks(at, blocks, reduce_block<Load>{load, count, blocks, partials});
  launch_blocks(at, 1, reduce_block<of_partials<Load>>{{load, partials}, blocks, 1, result});
}

} // namespace troupe::kernels::detail
