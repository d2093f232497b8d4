// Stores a batch set as a floor and a bitmap that starts at the floor's word.
#include "serialization/batch_set.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace troupe {

namespace {

constexpr std::uint64_t all_ones = ~std::uint64_t{0};

std::uint64_t first_word(const batch_set& x) { return x.floor().value / 64; }

/// Returns word `index`, counted from batch 0.
std::uint64_t word_at(const batch_set& x, std::uint64_t index) {
  const auto first = first_word(x);
  if (index < first)
    return all_ones;
  return index - first < x.words().size() ? x.words()[index - first] : 0;
}

std::uint64_t end_word(const batch_set& x) { return first_word(x) + x.words().size(); }

} // namespace

batch_set::batch_set(batch_id floor) : floor_(floor) { restore_invariants(); }

batch_set::batch_set(batch_id floor, std::vector<std::uint64_t> words)
    : floor_(floor), words_(std::move(words)) {
  restore_invariants();
}

bool batch_set::insert(batch_id batch) {
  if (contains(batch))
    return false;
  const auto index = static_cast<std::size_t>(batch.value / 64 - first_word(*this));
  if (index >= words_.size())
    words_.resize(index + 1);
  const auto word = words_[index] |= std::uint64_t{1} << (batch.value % 64);
  if (batch != floor_)
    return true;
  if (word == all_ones)
    restore_invariants();
  else
    floor_.value = batch.value / 64 * 64 + static_cast<std::uint64_t>(std::countr_one(word));
  return true;
}

bool batch_set::contains(batch_id batch) const {
  if (batch < floor_)
    return true;
  return ((word_at(*this, batch.value / 64) >> (batch.value % 64)) & 1) != 0;
}

std::uint64_t batch_set::size() const {
  auto total = first_word(*this) * 64;
  for (auto word : words_)
    total += static_cast<std::uint64_t>(std::popcount(word));
  return total;
}

batch_id batch_set::end() const {
  if (words_.empty())
    return floor_;
  const auto unused = static_cast<std::uint64_t>(std::countl_zero(words_.back()));
  return {end_word(*this) * 64 - unused};
}

void batch_set::intersect(const batch_set& other) {
  const auto floor = std::min(floor_, other.floor_);
  const auto first = floor.value / 64;
  const auto end = std::min(end_word(*this), end_word(other));
  std::vector<std::uint64_t> both;
  for (auto i = first; i < end; ++i)
    both.push_back(word_at(*this, i) & word_at(other, i));
  floor_ = floor;
  words_ = std::move(both);
  restore_invariants();
}

void batch_set::unite(const batch_set& other) {
  const auto floor = std::max(floor_, other.floor_);
  const auto first = floor.value / 64;
  const auto end = std::max(end_word(*this), end_word(other));
  std::vector<std::uint64_t> either;
  for (auto i = first; i < end; ++i)
    either.push_back(word_at(*this, i) | word_at(other, i));
  floor_ = floor;
  words_ = std::move(either);
  restore_invariants();
}

void batch_set::restore_invariants() {
  if (const auto below = floor_.value % 64; below != 0) {
    if (words_.empty())
      words_.push_back(0);
    words_.front() |= (std::uint64_t{1} << below) - 1;
  }
  const auto hole =
    std::find_if(words_.begin(), words_.end(), [](std::uint64_t word) { return word != all_ones; });
  const auto full = static_cast<std::uint64_t>(std::distance(words_.begin(), hole));
  floor_.value = (first_word(*this) + full) * 64;
  if (hole != words_.end())
    floor_.value += static_cast<std::uint64_t>(std::countr_one(*hole));
  words_.erase(words_.begin(), hole);
  while (!words_.empty() && words_.back() == 0)
    words_.pop_back();
}

} // namespace troupe
