// Finds the k-th largest magnitude by rounds over its bits. Each round counts, among the magnitudes
// that share the bits found so far, every value of the next bits. Counts are integers, so their
// order does not matter. Then the counts of preceding tiles tell each tile its positions in
// `places`.
#include "kernels/launch.inl.hpp"
#include "kernels/sparsify.hpp"
#include "kernels/sparsify.inl.hpp"

#include <algorithm>
#include <cassert>

namespace troupe::kernels {

namespace {

/// For each tile, the number of magnitudes above the k-th largest, and of those equal to it.
struct tile_counts {
  std::uint32_t *above, *equal;
};

/// The counterpart of detail::selection in the device's memory. Between rounds: the known bits of
/// the magnitude, and the number of taken elements that have them.
struct choice {
  std::uint32_t least, of_least;
};

struct add_body {
  float* v;
  const float* x;
  TROUPE_HD void operator()(std::size_t i) const { v[i] += x[i]; }
};

// -- the k-th largest -----------------------------------------------------------------------------

struct begin_body {
  std::uint32_t* counts;
  choice* chosen;
  std::uint32_t k;
  TROUPE_HD void operator()(std::size_t bin) const {
    counts[bin] = 0;
    if (bin == 0)
      *chosen = {0, k};
  }
};

/// Elements of a thread until the number of blocks reaches its limit. Each block adds up to 2048
/// counts to the common ones.
constexpr std::size_t counted_elements = 32, count_blocks_max = 1024;

/// Counts, by the bits from `shift` on, the elements whose bits from `known_shift` on are the known
/// ones.
struct count_block {
  struct shared {
    std::uint32_t counts[detail::magnitude_bins];
  };
  static constexpr unsigned phases = 3;

  const float* v;
  std::size_t count;
  unsigned blocks;
  int known_shift, shift;
  const choice* chosen;
  std::uint32_t* counts;

  TROUPE_HD void operator()(unsigned phase, unsigned block, unsigned thread, shared& memory) const {
    if (phase == 1) {
      const std::uint32_t known = chosen->least, mask = (1u << (known_shift - shift)) - 1;
      const std::size_t stride = std::size_t{blocks} * block_threads;
      for (std::size_t i = std::size_t{block} * block_threads + thread; i < count; i += stride) {
        const std::uint32_t size = detail::magnitude(v[i]);
        if (size >> known_shift == known)
          add_atomically(&memory.counts[size >> shift & mask], 1);
      }
      return;
    }
    for (std::size_t bin = thread; bin < detail::magnitude_bins; bin += block_threads)
      if (phase == 0)
        memory.counts[bin] = 0;
      else if (memory.counts[bin] != 0)
        add_atomically(&counts[bin], memory.counts[bin]);
  }
};

/// Finds, in one block, the bin of the k-th largest, and zeroes the counts for the next round.
struct choose_block {
  static constexpr std::size_t bins = detail::magnitude_bins / block_threads; ///< Bins of a thread.
  struct shared {
    std::uint32_t sums[block_threads];
  };
  static constexpr unsigned phases = 3;

  std::uint32_t* counts;
  int bits; ///< Width of a bin's number.
  choice* chosen;

  TROUPE_HD void choose(const shared& memory) const {
    std::uint32_t left = chosen->of_least;
    std::size_t part = block_threads - 1;
    for (; memory.sums[part] < left; --part)
      left -= memory.sums[part];
    std::size_t bin = part * bins + bins - 1;
    for (; counts[bin] < left; --bin)
      left -= counts[bin];
    *chosen = {chosen->least << bits | static_cast<std::uint32_t>(bin), left};
  }

  TROUPE_HD void operator()(unsigned phase, unsigned, unsigned thread, shared& memory) const {
    std::uint32_t* const own = counts + thread * bins;
    if (phase == 0) {
      memory.sums[thread] = 0;
      for (std::size_t k = 0; k < bins; ++k)
        memory.sums[thread] += own[k];
    } else if (phase == 1) {
      if (thread == 0)
        choose(memory);
    } else {
      for (std::size_t k = 0; k < bins; ++k)
        own[k] = 0;
    }
  }
};

// -- the places -----------------------------------------------------------------------------------

/// A block of threads has a tile, a thread four neighbours of it. In phases 0 to 8 each thread
/// counts the tile's elements up to its own.
struct tile {
  static constexpr std::uint32_t elements = top_k_tile / block_threads;
  static constexpr unsigned doublings = 8, last_phase = doublings + 1;
  static_assert(block_threads == 1u << doublings);
  /// The upper 16 bits count those above, the lower 16 the equal ones. Each phase reads one half
  /// and writes the other; after an even number of phases the first half has the sums.
  struct shared {
    std::uint32_t found[2][block_threads];
  };
  static_assert(top_k_tile < 1u << 16 && doublings % 2 == 0);

  const float* v;
  std::size_t count;
  const choice* chosen;

  TROUPE_HD std::size_t first_of(unsigned block, unsigned thread) const {
    return std::size_t{block} * top_k_tile + thread * elements;
  }

  TROUPE_HD std::uint32_t found_at(std::size_t first) const {
    std::uint32_t found = 0;
    for (std::size_t i = first; i < first + elements && i < count; ++i) {
      const std::uint32_t size = detail::magnitude(v[i]);
      found += size > chosen->least ? 1u << 16 : size == chosen->least ? 1u : 0u;
    }
    return found;
  }

  TROUPE_HD void add_up(unsigned phase, unsigned block, unsigned thread, shared& memory) const {
    if (phase == 0) {
      memory.found[0][thread] = found_at(first_of(block, thread));
      return;
    }
    const unsigned distance = 1u << (phase - 1);
    const auto& from = memory.found[(phase - 1) % 2];
    memory.found[phase % 2][thread] =
      from[thread] + (thread >= distance ? from[thread - distance] : 0);
  }
};

struct count_tile {
  using shared = tile::shared;
  static constexpr unsigned phases = tile::last_phase + 1;

  tile of;
  tile_counts counts;

  TROUPE_HD void operator()(unsigned phase, unsigned block, unsigned thread, shared& memory) const {
    if (phase < tile::last_phase)
      return of.add_up(phase, block, thread, memory);
    if (thread == block_threads - 1) {
      counts.above[block] = memory.found[0][thread] >> 16;
      counts.equal[block] = memory.found[0][thread] & 0xffff;
    }
  }
};

/// Replaces, in one block, a tile's counts by the sums over all tiles before it.
struct add_tiles_block {
  struct shared {
    std::uint32_t above[block_threads], equal[block_threads];
  };
  static constexpr unsigned phases = 3;

  tile_counts counts;
  unsigned tiles;

  /// Replaces each count by the sum of those before it.
  TROUPE_HD static std::uint32_t sum_before(std::uint32_t* counts, std::size_t begin,
                                            std::size_t end, std::uint32_t sum) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t own = counts[i];
      counts[i] = sum;
      sum += own;
    }
    return sum;
  }

  TROUPE_HD static std::uint32_t sum_of(const std::uint32_t* counts, std::size_t begin,
                                        std::size_t end) {
    std::uint32_t sum = 0;
    for (std::size_t i = begin; i < end; ++i)
      sum += counts[i];
    return sum;
  }

  TROUPE_HD void operator()(unsigned phase, unsigned, unsigned thread, shared& memory) const {
    const unsigned each = (tiles + block_threads - 1) / block_threads;
    const unsigned begin = thread * each < tiles ? thread * each : tiles;
    const unsigned end = begin + each < tiles ? begin + each : tiles;
    if (phase == 0) {
      memory.above[thread] = sum_of(counts.above, begin, end);
      memory.equal[thread] = sum_of(counts.equal, begin, end);
    } else if (phase == 1) {
      if (thread == 0) {
        sum_before(memory.above, 0, block_threads, 0);
        sum_before(memory.equal, 0, block_threads, 0);
      }
    } else {
      sum_before(counts.above, begin, end, memory.above[thread]);
      sum_before(counts.equal, begin, end, memory.equal[thread]);
    }
  }
};

struct take_tile {
  using shared = tile::shared;
  static constexpr unsigned phases = tile::last_phase + 1;

  tile of;
  tile_counts before;
  float* v;
  std::uint32_t* places;
  float* values;

  TROUPE_HD void operator()(unsigned phase, unsigned block, unsigned thread, shared& memory) const {
    if (phase < tile::last_phase)
      return of.add_up(phase, block, thread, memory);
    const choice chosen = *of.chosen;
    const std::uint32_t in_front = thread == 0 ? 0 : memory.found[0][thread - 1];
    std::uint32_t above = before.above[block] + (in_front >> 16);
    std::uint32_t equal = before.equal[block] + (in_front & 0xffff);
    const std::size_t first = of.first_of(block, thread);
    for (std::size_t i = first; i < first + tile::elements && i < of.count; ++i) {
      const std::uint32_t size = detail::magnitude(v[i]);
      if (size < chosen.least)
        continue;
      const bool is_equal = size == chosen.least;
      if (!is_equal || equal < chosen.of_least) {
        const std::size_t at = above + (equal < chosen.of_least ? equal : chosen.of_least);
        places[at] = static_cast<std::uint32_t>(i);
        values[at] = v[i];
        v[i] = 0.0f;
      }
      (is_equal ? equal : above) += 1;
    }
  }
};

// -- random_k -------------------------------------------------------------------------------------

struct random_places {
  std::uint64_t count, k;
  std::uint32_t key;
  TROUPE_HD std::size_t operator()(std::size_t j) const {
    return detail::drawn_place(detail::stretch_begin(j, count, k),
                               detail::stretch_begin(j + 1, count, k), key,
                               static_cast<std::uint32_t>(j));
  }
};

struct take_random_body {
  random_places place;
  float* v;
  float* values;
  TROUPE_HD void operator()(std::size_t j) const {
    float& taken = v[place(j)];
    values[j] = taken;
    taken = 0.0f;
  }
};

struct clear_body {
  float* y;
  TROUPE_HD void operator()(std::size_t i) const { y[i] = 0.0f; }
};

struct put_random_body {
  random_places place;
  const float* values;
  float* y;
  TROUPE_HD void operator()(std::size_t j) const { y[place(j)] = values[j]; }
};

} // namespace

void top_k(stream at, std::span<const float> x, std::span<float> residual,
           std::span<std::uint32_t> places, std::span<float> values,
           std::span<std::uint32_t> scratch) {
  const std::size_t count = x.size();
  assert(residual.size() == count && places.size() == values.size() && places.size() <= count);
  assert(scratch.size() == top_k_scratch(count));
  float* const v = residual.data();
  launch_elements(at, count, add_body{v, x.data()});
  if (places.empty())
    return;
  const auto tiles = blocks_for(count, top_k_tile);
  std::uint32_t* const counts = scratch.data();
  auto* const chosen = reinterpret_cast<choice*>(counts + detail::magnitude_bins);
  std::uint32_t* const above = counts + detail::magnitude_bins + 2;
  const tile_counts of_tiles{above, above + tiles};
  const auto blocks =
    std::min<unsigned>(count_blocks_max, blocks_for(count, block_threads * counted_elements));
  launch_elements(at, detail::magnitude_bins,
                  begin_body{counts, chosen, static_cast<std::uint32_t>(places.size())});
  int known_shift = detail::magnitude_bits_all;
  for (const int shift : detail::magnitude_shifts) {
    launch_blocks(at, blocks, count_block{v, count, blocks, known_shift, shift, chosen, counts});
    launch_blocks(at, 1, choose_block{counts, known_shift - shift, chosen});
    known_shift = shift;
  }
  const tile of{v, count, chosen};
  launch_blocks(at, tiles, count_tile{of, of_tiles});
  launch_blocks(at, 1, add_tiles_block{of_tiles, tiles});
  launch_blocks(at, tiles, take_tile{of, of_tiles, v, places.data(), values.data()});
}

void random_k(stream at, std::span<const float> x, std::span<float> residual, std::uint64_t seed,
              std::span<float> values) {
  assert(residual.size() == x.size() && values.size() <= x.size());
  launch_elements(at, x.size(), add_body{residual.data(), x.data()});
  launch_elements(at, values.size(),
                  take_random_body{{x.size(), values.size(), detail::random_key(seed)},
                                   residual.data(),
                                   values.data()});
}

void put_random_k(stream at, std::span<const float> values, std::uint64_t seed,
                  std::span<float> y) {
  assert(values.size() <= y.size());
  launch_elements(at, y.size(), clear_body{y.data()});
  launch_elements(
    at, values.size(),
    put_random_body{{y.size(), values.size(), detail::random_key(seed)}, values.data(), y.data()});
}

} // namespace troupe::kernels
