// A set of batch numbers that grows almost in order: all below a floor, and a few above it. A
// partition's applied batches and a server's status are batch sets.
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
  /// Makes the set of all batches below `floor`.
  explicit batch_set(batch_id floor);
  /// Takes the two parts of the wire format; accepts any words and restores the invariants.
  batch_set(batch_id floor, std::vector<std::uint64_t> words);

  /// Returns false if `batch` was in the set before.
  bool insert(batch_id batch);
  bool contains(batch_id batch) const;
  batch_id floor() const { return floor_; }
  /// Number of batches in the set.
  std::uint64_t size() const;
  /// Returns one past the largest batch in the set; 0 if it is empty.
  batch_id end() const;
  /// Keeps the batches that are in both sets.
  void intersect(const batch_set& other);
  /// Adds the batches of `other`.
  void unite(const batch_set& other);
  const std::vector<std::uint64_t>& words() const { return words_; }

  bool operator==(const batch_set&) const = default;

private:
  void restore_invariants();

  batch_id floor_;
  std::vector<std::uint64_t> words_;
};

} // namespace troupe
