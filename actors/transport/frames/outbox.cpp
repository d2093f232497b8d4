#include "actors/transport/frames/outbox.hpp"

#include <algorithm>

namespace troupe::detail {

namespace {

/// Bytes that a sender writes itself; the transport's thread writes the rest.
constexpr std::size_t sender_budget_bytes = std::size_t{4} << 20;
/// Bytes that the transport's thread writes before it turns to other links.
constexpr std::size_t flush_budget_bytes = std::size_t{4} << 20;
/// More bytes, or a frame this long after the last write, are written at once: the peer can begin
/// with them while this side goes on.
constexpr std::size_t cork_bytes_max = std::size_t{2} << 10;
constexpr std::chrono::microseconds cork_time_max{20};

} // namespace

outbox::fragment::fragment(const fragment_header& what)
    : header_bytes(fragment_header_bytes), traffic(what.traffic), piece_left(what.length) {
  std::ranges::copy(encode(what), header.begin());
}

outbox::outbox(poller& poll, std::uint64_t key, std::size_t bytes_max)
    : poll_(poll), key_(key), bytes_max_(bytes_max) {}

outbox::state outbox::send(traffic_class traffic, wire::frame frame) {
  frame = placed(std::move(frame));
  const std::scoped_lock lock{mutex_};
  if (closed_ || failed_ != state::drained)
    return state::waiting;
  // A busy stream is left to the poller. A write also sends corked frames.
  if (enqueue(traffic, std::move(frame)) && open_ && !busy())
    write(sender_budget_bytes);
  return state_now();
}

bool outbox::cork(traffic_class traffic, wire::frame frame) {
  const bool is_large = frame.size_bytes() > cork_bytes_max;
  frame = placed(std::move(frame));
  const std::scoped_lock lock{mutex_};
  if (closed_ || failed_ != state::drained)
    return false;
  if (enqueue(traffic, std::move(frame))) {
    if (!open_ || busy())
      return false; // open() or the poller will write it.
    if (is_large || unsent_bytes_ > cork_bytes_max || clock::now() > last_write_ + cork_time_max)
      write(flush_budget_bytes);
  }
  return !std::exchange(corked_, true);
}

void outbox::close() {
  const std::scoped_lock lock{mutex_};
  closed_ = true;
}

void outbox::attach(stream& out) {
  const std::scoped_lock lock{mutex_};
  stream_ = &out;
  interest_ = out.interest(false);
}

void outbox::begin(const preamble& first) {
  const std::scoped_lock lock{mutex_};
  begun_ = {};
  begun_.header = encode(first);
  begun_.header_bytes = preamble_bytes;
}

void outbox::send_first(wire::frame frame) {
  const std::scoped_lock lock{mutex_};
  if (failed_ != state::drained)
    return;
  unsent_bytes_ += frame.size_bytes();
  queue(traffic_class::control).push(std::move(frame));
  write(flush_budget_bytes);
}

void outbox::signal(bool arena_mapped) {
  const std::scoped_lock lock{mutex_};
  if (failed_ != state::drained)
    return;
  signals_.push_back(fragment{{.arena_mapped = arena_mapped}});
  write(flush_budget_bytes);
}

void outbox::open() {
  const std::scoped_lock lock{mutex_};
  open_ = true;
  for (auto& [traffic, frame] : held_)
    queue(traffic).push(std::move(frame));
  held_.clear();
  write(flush_budget_bytes);
}

void outbox::use(std::unique_ptr<arena_writer> arena) {
  arena_ = std::move(arena);
  usable_arena_ = arena_.get();
}

void outbox::trim_arena() {
  if (arena_)
    arena_->trim();
}

/// Copies the body into the arena, if any. Not under the lock, as a large tensor takes long.
wire::frame outbox::placed(wire::frame frame) const {
  arena_writer* const arena = usable_arena_.load(std::memory_order_acquire);
  return arena == nullptr ? std::move(frame) : arena->place(std::move(frame));
}

outbox::state outbox::flush() {
  const std::scoped_lock lock{mutex_};
  corked_ = false;
  write(flush_budget_bytes);
  return state_now();
}

outbox::state outbox::refresh() {
  const std::scoped_lock lock{mutex_};
  update_interest();
  return state_now();
}

int outbox::error() const {
  const std::scoped_lock lock{mutex_};
  return error_;
}

outbox::clock::time_point outbox::idle_since() const {
  const std::scoped_lock lock{mutex_};
  return empty() ? last_write_ : clock::time_point::max();
}

void outbox::detach() {
  const std::scoped_lock lock{mutex_};
  closed_ = true;
  stream_ = nullptr;
  held_.clear();
  for (frame_queue& each : queues_)
    each.clear();
}

/// Queues a frame, or fails as overfull. One frame may exceed the bound, else it could never be
/// sent.
bool outbox::enqueue(traffic_class traffic, wire::frame frame) {
  const std::size_t size = frame.size_bytes();
  if (unsent_bytes_ != 0 && unsent_bytes_ + size > bytes_max_) {
    fail(state::overfull, 0);
    return false;
  }
  unsent_bytes_ += size;
  if (open_)
    queue(traffic).push(std::move(frame));
  else
    held_.emplace_back(traffic, std::move(frame));
  return true;
}

bool outbox::empty() const {
  return begun_.done() && signals_.empty()
         && std::ranges::all_of(queues_, [](const auto& each) { return each.size_bytes() == 0; });
}

/// Returns whether the poller will report EPOLLOUT.
bool outbox::busy() const { return (interest_ & EPOLLOUT) != 0; }

void outbox::write(std::size_t budget_bytes) {
  if (stream_ == nullptr || failed_ != state::drained)
    return;
  while (!empty() && budget_bytes != 0) {
    gather_list parts;
    gather(parts, budget_bytes);
    const std::size_t size = parts.size_bytes();
    const transfer went = stream_->write(parts.parts());
    if (went.how == transfer::status::failed)
      return fail(state::broken, went.error);
    if (went.bytes != 0)
      last_write_ = clock::now();
    commit(went.bytes);
    budget_bytes -= std::min(went.bytes, budget_bytes);
    if (went.bytes < size)
      break; // The stream is full; a retry would only return EAGAIN.
  }
  update_interest();
}

/// Cuts the next fragments, highest class first. Unwritten fragments are cut anew the next time,
/// when a higher class may wait.
void outbox::gather(gather_list& parts, std::size_t size_max) {
  plan planned;
  for (std::size_t i = 0; i < traffic_classes; ++i) {
    planned.at[i] = queues_[i].front();
    planned.bytes_left[i] = queues_[i].size_bytes();
  }
  planned_.clear();
  gather(begun_, planned, parts, size_max);
  for (const fragment& each : signals_)
    gather(each, planned, parts, size_max);
  for (std::size_t i = 0; i < traffic_classes;) {
    if (parts.full() || parts.size_bytes() >= size_max)
      return;
    const std::size_t length = std::min(planned.bytes_left[i], fragment_bytes_max);
    if (length == 0) {
      ++i;
      continue;
    }
    const fragment_header header{static_cast<std::uint32_t>(length), static_cast<traffic_class>(i)};
    gather(planned_.emplace_back(header), planned, parts, size_max);
  }
}

void outbox::gather(const fragment& from, plan& planned, gather_list& parts,
                    std::size_t size_max) const {
  if (parts.full() || parts.size_bytes() >= size_max)
    return;
  const auto i = static_cast<std::size_t>(from.traffic);
  planned.bytes_left[i] -= from.piece_left;
  parts.add(std::span{from.header}.first(from.header_bytes).subspan(from.header_sent));
  const std::size_t room = size_max - std::min(parts.size_bytes(), size_max);
  queues_[i].gather(planned.at[i], std::min(from.piece_left, room), parts);
}

/// Removes bytes that were written.
void outbox::commit(std::size_t size_bytes) {
  while (size_bytes != 0) {
    if (begun_.done()) {
      std::deque<fragment>& next = signals_.empty() ? planned_ : signals_;
      begun_ = next.front();
      next.pop_front();
    }
    const std::size_t of_header = std::min(size_bytes, begun_.header_bytes - begun_.header_sent);
    const std::size_t of_piece = std::min(size_bytes - of_header, begun_.piece_left);
    begun_.header_sent += of_header;
    begun_.piece_left -= of_piece;
    queue(begun_.traffic).consume(of_piece);
    unsent_bytes_ -= of_piece;
    size_bytes -= of_header + of_piece;
  }
}

void outbox::fail(state how, int error) {
  failed_ = how;
  error_ = error;
  held_.clear();
  begun_ = {};
  signals_.clear();
  for (frame_queue& each : queues_)
    each.clear();
  update_interest();
}

void outbox::update_interest() {
  if (stream_ == nullptr)
    return;
  const std::uint32_t wanted = stream_->interest(!empty());
  if (wanted != std::exchange(interest_, wanted))
    poll_.change(stream_->poll_descriptor(), key_, wanted);
}

outbox::state outbox::state_now() const {
  if (failed_ != state::drained)
    return failed_;
  return empty() ? state::drained : state::waiting;
}

} // namespace troupe::detail
