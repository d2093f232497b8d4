#include "actors/transport/frames/frame_reader.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace troupe::detail {

namespace {

/// A larger head is rare (a configuration, a job), so its scratch memory is freed after use.
constexpr std::size_t head_kept_bytes = std::size_t{1} << 20;

} // namespace

std::span<std::byte> frame_reader::place() {
  switch (stage_) {
  case stage::prefix: return std::span{prefix_}.subspan(filled_);
  case stage::head:
    return std::as_writable_bytes(std::span{head_}).first(sizes_.head_bytes).subspan(filled_);
  case stage::body: return std::span{body_.get(), sizes_.body_bytes}.subspan(filled_);
  case stage::complete: break;
  }
  return {};
}

std::span<std::byte> frame_reader::direct() {
  return stage_ == stage::prefix ? std::span<std::byte>{} : place();
}

void frame_reader::advance(std::size_t size_bytes) {
  filled_ += size_bytes;
  skip_filled_stages();
}

result<std::size_t> frame_reader::take(std::span<const std::byte> bytes) {
  assert(!complete());
  std::size_t taken = 0;
  while (taken < bytes.size() && !complete()) {
    const std::span<std::byte> to = place();
    const std::size_t size = std::min(to.size(), bytes.size() - taken);
    std::memcpy(to.data(), bytes.data() + taken, size);
    taken += size;
    if (stage_ != stage::prefix || size < to.size()) {
      advance(size);
      continue;
    }
    if (const auto begun = begin_frame(); !begun)
      return begun.error();
  }
  return taken;
}

void frame_reader::admit(std::shared_ptr<const arena_reader> arena) {
  admitted_ = true;
  arena_ = std::move(arena);
}

/// Starts the frame whose prefix is complete.
result<void> frame_reader::begin_frame() {
  std::uint32_t slot = 0;
  if (arena_) {
    std::memcpy(&slot, prefix_.data() + slot_number_offset, sizeof slot);
    std::memset(prefix_.data() + slot_number_offset, 0, sizeof slot);
  }
  const auto sizes = wire::decode_prefix(prefix_);
  if (!sizes)
    return sizes.error();
  if (!admitted_
      && wire::prefix_bytes + sizes->head_bytes + sizes->body_bytes > wire::hello_bytes_max)
    return {errc::malformed, "the first message is too long"};
  sizes_ = *sizes;
  if (slot != 0) {
    auto found = arena_->slot(slot, sizes_.body_bytes);
    if (!found)
      return found.error();
    slot_ = std::move(*found);
  }
  const std::size_t words = (sizes_.head_bytes + 7) / 8;
  if (head_.size() < words)
    head_.resize(words);
  enter(stage::head);
  skip_filled_stages();
  return {};
}

void frame_reader::enter(stage next) {
  stage_ = next;
  filled_ = 0;
  if (stage_ == stage::body && sizes_.body_bytes != 0)
    body_ = pool_->bytes(sizes_.body_bytes);
}

void frame_reader::skip_filled_stages() {
  if (stage_ == stage::head && filled_ == sizes_.head_bytes)
    enter(slot_ ? stage::complete : stage::body);
  if (stage_ == stage::body && filled_ == sizes_.body_bytes)
    enter(stage::complete);
}

result<message> frame_reader::decode() {
  assert(complete());
  const auto head = std::as_bytes(std::span{head_}).first(sizes_.head_bytes);
  auto decoded = wire::decode(head, slot_ ? std::move(slot_) : std::move(body_), sizes_.body_bytes);
  slot_.reset();
  body_.reset();
  if (sizes_.head_bytes > head_kept_bytes)
    head_ = {};
  enter(stage::prefix);
  return decoded;
}

} // namespace troupe::detail
