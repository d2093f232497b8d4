#include "actors/links/outbox.hpp"

#include <algorithm>
#include <array>
#include <limits.h>
#include <utility>

namespace troupe::detail {

namespace {

/// Parts of one sendmsg: enough to send many small messages at once.
constexpr std::size_t parts_max = 128;
static_assert(parts_max <= IOV_MAX);
/// A sender writes at most so much itself, then leaves the rest to the transport's thread ...
constexpr std::size_t sender_budget_bytes = std::size_t{4} << 20;
/// ... which turns to other links after so much.
constexpr std::size_t flush_budget_bytes = std::size_t{4} << 20;

} // namespace

std::span<const std::byte> outbox::item::rest() const {
  const std::span<const std::byte> whole = part == 0 ? frame.head : frame.body[part - 1].bytes;
  return whole.subspan(offset);
}

/// Moves over bytes that were written, as far as they belong to this frame.
void outbox::item::skip(std::size_t& size_bytes) {
  while (!done()) {
    const std::size_t left = rest().size();
    const std::size_t step = std::min(left, size_bytes);
    offset += step;
    size_bytes -= step;
    if (step < left)
      return;
    ++part;
    offset = 0;
  }
}

outbox::outbox(poller& poll, std::uint64_t key, std::size_t bytes_max)
    : poll_(poll), key_(key), bytes_max_(bytes_max) {}

outbox::state outbox::send(wire::frame frame) {
  const std::scoped_lock lock{mutex_};
  if (closed_ || failed_ != state::drained)
    return state::waiting;
  // Where the socket is busy, the poller says when it is not; what others corked goes out as well.
  if (enqueue(std::move(frame)) && open_ && !armed_)
    write(sender_budget_bytes);
  return state_now();
}

bool outbox::cork(wire::frame frame) {
  const std::scoped_lock lock{mutex_};
  if (closed_ || failed_ != state::drained)
    return false;
  if (enqueue(std::move(frame)) && (!open_ || armed_))
    return false; // open() or the poller will have it written.
  return !std::exchange(corked_, true);
}

void outbox::close() {
  const std::scoped_lock lock{mutex_};
  closed_ = true;
}

void outbox::attach(const stream_socket& socket) {
  const std::scoped_lock lock{mutex_};
  socket_ = &socket;
}

void outbox::greet(wire::frame frame) {
  const std::scoped_lock lock{mutex_};
  if (failed_ != state::drained)
    return;
  unsent_bytes_ += frame.size_bytes();
  queue_.push_back({std::move(frame)});
  write(flush_budget_bytes);
}

void outbox::open() {
  const std::scoped_lock lock{mutex_};
  open_ = true;
  std::move(held_.begin(), held_.end(), std::back_inserter(queue_));
  held_.clear();
  write(flush_budget_bytes);
}

outbox::state outbox::flush() {
  const std::scoped_lock lock{mutex_};
  corked_ = false;
  write(flush_budget_bytes);
  return state_now();
}

outbox::state outbox::look() const {
  const std::scoped_lock lock{mutex_};
  return state_now();
}

int outbox::error() const {
  const std::scoped_lock lock{mutex_};
  return error_;
}

outbox::clock::time_point outbox::idle_since() const {
  const std::scoped_lock lock{mutex_};
  return queue_.empty() ? last_write_ : clock::time_point::max();
}

void outbox::detach() {
  const std::scoped_lock lock{mutex_};
  closed_ = true;
  socket_ = nullptr;
  held_.clear();
  queue_.clear();
}

/// One frame may be larger than the bound: else it could never be sent.
bool outbox::admit(const wire::frame& frame) {
  const std::size_t size = frame.size_bytes();
  if (unsent_bytes_ != 0 && unsent_bytes_ + size > bytes_max_)
    return false;
  unsent_bytes_ += size;
  return true;
}

bool outbox::enqueue(wire::frame frame) {
  if (!admit(frame)) {
    fail(state::overfull, 0);
    return false;
  }
  (open_ ? queue_ : held_).push_back({std::move(frame)});
  return true;
}

void outbox::write(std::size_t budget_bytes) {
  if (socket_ == nullptr || failed_ != state::drained)
    return;
  std::array<iovec, parts_max> parts;
  while (!queue_.empty() && budget_bytes != 0) {
    std::size_t size = budget_bytes;
    const std::size_t count = gather(parts, size);
    const transfer went = socket_->write({parts.data(), count});
    if (went.how == transfer::status::failed)
      return fail(state::broken, went.error);
    if (went.bytes != 0)
      last_write_ = clock::now();
    drop_written(went.bytes);
    budget_bytes -= went.bytes;
    if (went.bytes < size)
      break; // The socket is full; to ask again would only bring EAGAIN.
  }
  update_interest();
}

/// In: how much may be gathered; out: how much was. Returns the number of parts.
std::size_t outbox::gather(std::span<iovec> parts, std::size_t& size_bytes) {
  std::size_t count = 0, size = 0;
  const auto add = [&](std::span<const std::byte> bytes) {
    const std::size_t length = std::min(bytes.size(), size_bytes - size);
    if (length != 0)
      parts[count++] = {const_cast<std::byte*>(bytes.data()), length};
    size += length;
    return count < parts.size() && size < size_bytes;
  };
  for (const item& each : queue_) {
    bool more = add(each.rest());
    for (std::size_t i = each.part; more && i < each.frame.body.size(); ++i)
      more = add(each.frame.body[i].bytes);
    if (!more)
      break;
  }
  size_bytes = size;
  return count;
}

void outbox::drop_written(std::size_t size_bytes) {
  unsent_bytes_ -= size_bytes;
  while (!queue_.empty()) {
    queue_.front().skip(size_bytes);
    if (!queue_.front().done())
      return;
    queue_.pop_front();
  }
}

void outbox::fail(state how, int error) {
  failed_ = how;
  error_ = error;
  held_.clear();
  queue_.clear();
  update_interest();
}

void outbox::update_interest() {
  const bool wanted = !queue_.empty();
  if (socket_ == nullptr || wanted == armed_)
    return;
  armed_ = wanted;
  poll_.change(socket_->poll_descriptor(), key_, wanted ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

outbox::state outbox::state_now() const {
  if (failed_ != state::drained)
    return failed_;
  return queue_.empty() ? state::drained : state::waiting;
}

} // namespace troupe::detail
