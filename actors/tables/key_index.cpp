#include "actors/tables/key_index.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <span>
#include <utility>

namespace troupe {

namespace {

constexpr std::size_t buckets_min = 16;

} // namespace

key_index::key_index(std::shared_ptr<huge_page_pool> pool, double load_max)
    : pool_(std::move(pool)), load_max_(load_max) {
  assert(load_max > 0.0 && load_max <= 0.75);
  make_buckets(buckets_min);
}

void key_index::clear() {
  if (size_ == 0)
    return;
  std::fill_n(buckets_, bucket_mask_ + 1, bucket{});
  size_ = 0;
}

std::uint32_t key_index::insert(std::uint64_t key, std::uint64_t hash) {
  if (size_ == size_max_)
    grow();
  put(key, size_, hash);
  return size_++;
}

void key_index::put(std::uint64_t key, std::uint32_t number, std::uint64_t hash) {
  for (std::size_t i = hash >> shift_;; i = (i + 1) & bucket_mask_) {
    bucket& at = buckets_[i];
    const auto free = std::find(at.numbers, at.numbers + bucket_slots, absent) - at.numbers;
    if (free == bucket_slots)
      continue;
    at.keys[free] = key;
    at.numbers[free] = number;
    return;
  }
}

void key_index::grow() {
  const auto old_memory = memory_;
  const std::span<const bucket> old{buckets_, bucket_mask_ + 1};
  make_buckets(2 * old.size());
  for (const bucket& x : old)
    for (std::size_t k = 0; k < bucket_slots && x.numbers[k] != absent; ++k)
      put(x.keys[k], x.numbers[k], row_hash(x.keys[k]));
}

void key_index::make_buckets(std::size_t count) {
  memory_ = pool_->bytes(count * sizeof(bucket));
  buckets_ = reinterpret_cast<bucket*>(memory_.get());
  std::uninitialized_fill_n(buckets_, count, bucket{});
  bucket_mask_ = count - 1;
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(count));
  size_max_ = static_cast<std::uint32_t>(static_cast<double>(count * bucket_slots) * load_max_);
}

} // namespace troupe
