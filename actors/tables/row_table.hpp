// Holds the rows of one sparse table in one partition: slabs of rows in the order of their
// creation, and an index of their keys.
#pragma once

#include "actors/tables/initial_values.hpp"
#include "actors/tables/key_index.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"
#include "storage/cut.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace troupe {

/// The layout that all partitions of a sparse table share.
struct row_layout {
  row_layout(const job_spec& job, table_id which, std::shared_ptr<huge_page_pool> memory);

  table_id table;
  std::uint32_t width = 0;
  std::uint32_t row_floats = 0; ///< Values, then optimiser state.
  bool has_steps = false;       ///< Each row counts its own steps: adam, server functions.
  unsigned slab_bits = 0;       ///< slab_rows(table) = 2^slab_bits.
  row_initializer initial;
  std::shared_ptr<huge_page_pool> pool;
};

/// Rows are numbered from 0, in the order of their creation.
///
/// Invariants:
/// (1) a frozen slab is never written to: writable() replaces it by a copy first. pin() and adopt()
///     freeze slabs, so a checkpoint keeps its content.
/// (2) a slab's version counts the writes to its rows, so it is a function of the steps taken:
///     replicas that agree on it have the same rows there.
/// (3) addresses from writable() are good until the next pin().
class row_table {
public:
  /// Borrowed: `layout` outlives it. `load_max` as in key_index.
  row_table(const row_layout& layout, double load_max)
      : layout_(layout), index_(layout.pool, load_max) {}

  /// Adds a slab of a checkpoint as the last one, without a copy. Errors: damaged (another shape, a
  /// slab left out, a key that is present already).
  result<void> adopt(const slab_image& image);
  /// Freezes all slabs and returns them.
  std::vector<slab_image> pin();

  void prefetch(std::uint64_t hash) const { index_.prefetch(hash); }
  /// Returns the row's number, or key_index::absent.
  std::uint32_t find(std::uint64_t key, std::uint64_t hash) const { return index_.find(key, hash); }
  /// Returns the row's number; makes a missing row, with the table's initial values.
  std::uint32_t find_or_make(std::uint64_t key, std::uint64_t hash) {
    const std::uint32_t number = index_.find(key, hash);
    return number != key_index::absent ? number : make(key, hash);
  }

  /// Returns the row for reading: f32[row_floats].
  const float* at(std::uint32_t number) const {
    return places_[number >> layout_.slab_bits].rows + offset(number);
  }
  /// Returns the row for writing: f32[row_floats].
  float* writable(std::uint32_t number) {
    const std::size_t slab = number >> layout_.slab_bits;
    place& at = places_[slab];
    if (at.writable == nullptr)
      thaw(slab);
    ++at.version;
    return at.writable + offset(number);
  }
  /// Returns the row's count of steps. Requires: has_steps, and writable(number) was called.
  std::uint64_t* steps(std::uint32_t number) {
    return places_[number >> layout_.slab_bits].steps + (number & slab_mask());
  }

  /// Returns the row's count of steps, for reading. Requires: has_steps.
  std::uint64_t steps_of(std::uint32_t number) const {
    return holders_[number >> layout_.slab_bits].steps.get()[number & slab_mask()];
  }

  std::uint64_t size() const { return index_.size(); }
  /// Continues a checksum with the keys and rows.
  std::uint32_t checksum(std::uint32_t previous) const;

private:
  /// The addresses of a slab, which each look-up needs.
  struct place {
    const float* rows = nullptr;
    float* writable = nullptr; ///< `rows`; null while frozen.
    std::uint64_t* keys = nullptr;
    std::uint64_t* steps = nullptr;
    std::uint64_t version = 0;
  };
  /// Owns the memory of a slab; a pin hands it out.
  struct holder {
    float_ptr rows;
    key_ptr keys;
    key_ptr steps;
  };

  std::size_t slab_mask() const { return (std::size_t{1} << layout_.slab_bits) - 1; }
  std::size_t offset(std::uint32_t number) const {
    return (number & slab_mask()) * layout_.row_floats;
  }
  std::uint64_t rows_in(std::size_t i) const;
  std::uint32_t make(std::uint64_t key, std::uint64_t hash);
  void thaw(std::size_t slab);

  const row_layout& layout_;
  key_index index_;
  std::vector<place> places_; ///< One for each slab; all are full but the last.
  std::vector<holder> holders_;
};

} // namespace troupe
