#include "bench/links/link_contest.hpp"

#include "bench/aligned_floats.hpp"
#include "kernels/optimizer.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>

namespace troupe::bench {

namespace {

std::shared_ptr<float> filled(buffer_pool& pool, std::size_t floats, float value) {
  auto made = pool.floats(floats);
  for (std::size_t i = 0; i < floats; ++i)
    made.get()[i] = value + static_cast<float>(i % 64); // Whole numbers, so no two payloads agree.
  return made;
}

} // namespace

payload_reader::payload_reader(const load& what) : what_(what) {
  if (what.kind == work::sgd)
    weights_ = filled(pool_, what.bytes / sizeof(float), 1);
}

std::uint64_t payload_reader::operator()(const void* payload) {
  if (what_.kind == work::sum)
    return checksum(payload, what_.bytes);
  const std::size_t floats = what_.bytes / sizeof(float);
  const std::span<float> weights{weights_.get(), floats};
  const std::span gradient{aligned_floats(payload, floats, scratch_), floats};
  // The rate is small enough that the weights stay finite however long it runs.
  const bool finite = kernels::optimizer_step(weights, {}, weights, {}, gradient, {.rate = 1e-6f});
  return finite ? checksum(weights.data(), sizeof(float)) : 0;
}

payloads::payloads(const load& what) : kind_(what.kind) {
  for (std::size_t i = 0; i < what.window; ++i) {
    buffers_.push_back(filled(pool_, what.bytes / sizeof(float), static_cast<float>(i)));
    sums_.push_back(checksum(buffers_.back().get(), what.bytes));
  }
}

void payloads::check_answer(std::size_t i, std::uint64_t answer) const {
  if (kind_ == work::sum && answer != sums_[i % sums_.size()])
    throw std::runtime_error{"a payload did not arrive as it was sent"};
}

} // namespace troupe::bench
