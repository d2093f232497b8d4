// The sums that each batch adds to, the same on every machine:
//
//   element i = sum over all batches b of 1 + bit(b, i mod 64)
//
// bit(b, k) being bit k of a random word of batch b. With --sparse the elements lie in rows of 16,
// and a batch touches about half of the rows: row r where bit r mod 64 of another random word of
// the batch is set.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>

namespace count_batches {

constexpr std::size_t bits = 64;
constexpr std::uint32_t row_width = 16;

/// Returns a random word of the batch.
inline std::uint64_t random_word(std::uint64_t batch) { return std::mt19937_64{batch}(); }

/// Returns the number that the batch of this word adds to an element.
inline float term(std::uint64_t word, std::size_t element) {
  return 1.0f + static_cast<float>(word >> element % bits & 1);
}

/// Keys are far apart, as those of real tables.
inline std::uint64_t key_of(std::uint64_t row) { return row * 0x9e3779b97f4a7c15; }
inline std::uint64_t row_of(std::uint64_t key) { return key * 0xf1de83e19937733d; } // Its inverse.

/// Returns a word whose bit r mod 64 says whether the batch of this word touches row r.
inline std::uint64_t rows_word(std::uint64_t word) { return random_word(word); }
inline bool touches(std::uint64_t rows, std::uint64_t row) { return (rows >> row % bits & 1) != 0; }

/// The numbers of batches: of the job, and of one step.
struct schedule {
  std::uint64_t epochs = 1;
  std::uint64_t batches = 1; ///< Batches of an epoch.
  std::uint64_t slots =
    1; ///< Batches of a step. bsp: the workers, but fewer at the end of an epoch.
  std::uint64_t rows = 0; ///< --sparse: of the table.
  float gain = 1;         ///< Of gradients, which a stage divides by it.

  std::uint64_t slots_beside(std::uint64_t index) const {
    return std::min(slots, batches - index / slots * slots);
  }
};

} // namespace count_batches
