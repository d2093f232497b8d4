// A set of batch numbers that grows almost in order: everything below a floor, and a few above it.
// A partition's marks (which batches were applied) and a server's report are batch sets.
#pragma once

#include "serialization/ids.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// Invariants:
/// (1) every batch < floor() is in the set; floor() itself is not.
/// (2) bit i of words() stands for batch floor_word * 64 + i where floor_word = floor() / 64;
///     bits below floor() are set; the last word is not 0 unless words() is empty.
class batch_set {
public:
  batch_set() = default;
  /// All batches below `floor`.
  explicit batch_set(batch_id floor);
  /// From the two parts of the wire format; accepts any words and restores the invariants.
  batch_set(batch_id floor, std::vector<std::uint64_t> words);

  /// Returns false where `batch` was in the set before.
  bool insert(batch_id batch);
  bool contains(batch_id batch) const;
  batch_id floor() const { return floor_; }
  /// Number of batches in the set.
  std::uint64_t size() const;
  /// One past the largest batch in the set; 0 where it is empty.
  batch_id end() const;
  /// Keeps what is in both.
  void intersect(const batch_set& other);
  /// Adds what is in `other`.
  void unite(const batch_set& other);
  const std::vector<std::uint64_t>& words() const { return words_; }

  bool operator==(const batch_set&) const = default;

private:
  void restore_invariants();

  batch_id floor_;
  std::vector<std::uint64_t> words_;
};

} // namespace troupe
