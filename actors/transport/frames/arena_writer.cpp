#include "actors/transport/frames/arena_writer.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace troupe::detail {

namespace {

// Constants that older headers lack.
constexpr unsigned memfd_not_executable = 0x8;  // MFD_NOEXEC_SEAL, Linux 6.3
constexpr int advice_populate_for_writing = 23; // MADV_POPULATE_WRITE, Linux 5.14

/// Slots that a reader may hold; beyond that, bodies go over the socket. No reader waits for more,
/// and a look at all words takes at most a microsecond.
constexpr std::size_t given_max = 1024;

descriptor make_memory(std::size_t size_bytes) {
  constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  descriptor made{::memfd_create("troupe-arena", flags | memfd_not_executable)};
  if (!made && errno == EINVAL)
    made = descriptor{::memfd_create("troupe-arena", flags)};
  if (!made || ::ftruncate(made.get(), static_cast<off_t>(size_bytes)) != 0
      || ::fcntl(made.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return {};
  return made;
}

} // namespace

std::unique_ptr<arena_writer> arena_writer::make(std::size_t size_bytes) {
  if (!arena_layout::usable(size_bytes))
    return nullptr;
  descriptor memory = make_memory(size_bytes);
  if (!memory)
    return nullptr;
  mapped_memory whole{memory.get(), 0, size_bytes, true};
  if (!whole)
    return nullptr;
  std::unique_ptr<arena_writer> made{
    new arena_writer{std::move(memory), std::move(whole), size_bytes}};
  // Backs the words; fails if the system cannot back a mapping without risk of SIGBUS.
  if (!made->populate({0, made->layout_.first}))
    return nullptr;
  return made;
}

arena_writer::arena_writer(descriptor memory, mapped_memory whole, std::size_t size_bytes)
    : layout_(size_bytes), memory_(std::move(memory)), whole_(std::move(whole)),
      granules_(layout_.first, layout_.granules), populated_(0) {}

wire::frame arena_writer::place(wire::frame frame) {
  const std::size_t bytes = frame.size_bytes() - frame.head.size();
  if (bytes < body_bytes_min)
    return frame;
  const auto into = take(bytes);
  if (!into)
    return frame;
  std::byte* to = whole_.data() + into->first * granule_bytes;
  for (const auto& part : frame.body) {
    std::memcpy(to, part.bytes.data(), part.bytes.size());
    to += part.bytes.size();
  }
  --copying_;
  frame.body.clear();
  std::memcpy(frame.head.data() + slot_number_offset, &into->first, sizeof into->first);
  return frame;
}

std::optional<arena_writer::slot> arena_writer::take(std::size_t bytes) {
  const std::size_t count = arena_layout::granules_for(bytes);
  if (count > layout_.granules)
    return std::nullopt;
  slot wanted{0, static_cast<std::uint32_t>(count)};
  const std::scoped_lock lock{mutex_};
  if (!granules_.has_recent(wanted.count) || given_.size() >= given_max)
    reclaim();
  if (given_.size() >= given_max)
    return std::nullopt;
  const auto first = granules_.take(wanted.count);
  if (!first)
    return std::nullopt;
  wanted.first = *first;
  if (!populate(wanted)) {
    granules_.give_back(wanted.first, wanted.count);
    return std::nullopt;
  }
  std::atomic_ref{word(wanted.first)}.store(static_cast<std::uint32_t>(slot_word::used),
                                            std::memory_order_relaxed);
  given_.push_back(wanted);
  idle_ = false;
  ++copying_;
  return wanted;
}

void arena_writer::trim() {
  const std::scoped_lock lock{mutex_};
  // A reader may store `free` too early, so given_ does not tell which frames are being copied.
  if (!std::exchange(idle_, true) || copying_ != 0)
    return;
  reclaim();
  granules_.merge_recent(); // Else the next slot could lie far up, above empty memory.
  std::uint32_t end = layout_.first;
  for (const slot& each : given_)
    end = std::max(end, each.first + each.count);
  if (end >= populated_)
    return;
  // If the system refuses, the memory stays, and populating it again is free.
  (void)::madvise(whole_.data() + end * granule_bytes, (populated_ - end) * granule_bytes,
                  MADV_REMOVE);
  populated_ = end;
}

/// Backs the granules up to the end of `wanted` with memory; returns false if there is none.
/// Touching them instead would then raise SIGBUS.
bool arena_writer::populate(const slot& wanted) {
  const std::uint32_t end = wanted.first + wanted.count;
  if (end <= populated_)
    return true;
  if (::madvise(whole_.data() + populated_ * granule_bytes, (end - populated_) * granule_bytes,
                advice_populate_for_writing)
      != 0)
    return false;
  populated_ = end;
  return true;
}

void arena_writer::reclaim() {
  std::erase_if(given_, [this](const slot& each) {
    const auto now = std::atomic_ref{word(each.first)}.load(std::memory_order_acquire);
    if (now != static_cast<std::uint32_t>(slot_word::free))
      return false;
    granules_.give_back(each.first, each.count);
    return true;
  });
}

std::uint32_t& arena_writer::word(std::uint32_t granule) const {
  return reinterpret_cast<std::uint32_t*>(whole_.data())[granule];
}

} // namespace troupe::detail
