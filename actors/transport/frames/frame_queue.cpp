#include "actors/transport/frames/frame_queue.hpp"

#include <algorithm>

namespace troupe::detail {

namespace {

std::span<const std::byte> part_of(const wire::frame& what, std::size_t part) {
  return part == 0 ? std::span<const std::byte>{what.head} : what.body[part - 1].bytes;
}

} // namespace

void gather_list::add(std::span<const std::byte> bytes) {
  if (bytes.empty())
    return;
  parts_[count_++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  size_bytes_ += bytes.size();
}

void frame_queue::push(wire::frame what) {
  size_bytes_ += what.size_bytes();
  frames_.push_back(std::move(what));
}

void frame_queue::gather(cursor& at, std::size_t size_bytes, gather_list& to) const {
  while (size_bytes != 0 && !to.full()) {
    const wire::frame& each = frames_[at.frame];
    const auto rest = part_of(each, at.part).subspan(at.offset);
    const std::size_t step = std::min(rest.size(), size_bytes);
    to.add(rest.first(step));
    size_bytes -= step;
    at.offset += step;
    if (step < rest.size())
      return;
    at.offset = 0;
    if (++at.part > each.body.size())
      at = {at.frame + 1, 0, 0};
  }
}

void frame_queue::consume(std::size_t size_bytes) {
  size_bytes_ -= size_bytes;
  while (!frames_.empty()) {
    const std::size_t left = part_of(frames_.front(), front_.part).size() - front_.offset;
    if (size_bytes < left) {
      front_.offset += size_bytes;
      return;
    }
    size_bytes -= left;
    front_.offset = 0;
    if (++front_.part > frames_.front().body.size()) {
      frames_.pop_front();
      front_.part = 0;
    }
    if (size_bytes == 0)
      return;
  }
}

void frame_queue::clear() {
  frames_.clear();
  front_ = {};
  size_bytes_ = 0;
}

} // namespace troupe::detail
