#include "kernels/executors/team_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <utility>

namespace troupe::kernels {

struct team_memory::header {
  std::uint64_t magic;
  std::uint32_t ranks;
  std::atomic<std::uint32_t> round;
  std::atomic<std::uint64_t> failure;
  std::uint64_t room_floats; ///< Room of one rank.
};

namespace {

constexpr std::uint64_t magic = 0x74726f7570653031; // "troupe01"
constexpr std::size_t page = 4096;
constexpr std::size_t lines_begin = 256;

std::size_t up_to_page(std::size_t bytes) { return (bytes + page - 1) / page * page; }

std::size_t slots_begin(std::uint32_t ranks) { return lines_begin + ranks * sizeof(team_line); }

std::size_t parts_begin(std::uint32_t ranks) {
  return up_to_page(slots_begin(ranks) + 2 * ranks * team_slot_floats * sizeof(float));
}

std::size_t room_begin(std::uint32_t ranks) {
  return parts_begin(ranks) + (ranks + 1) * team_part_floats * sizeof(float);
}

failure no_memory(std::size_t bytes, int error) {
  return {errc::io_failed, "cannot share " + std::to_string((bytes >> 20) + 1)
                             + " MiB of memory: " + std::strerror(error)};
}

failure not_of_a_team() { return {errc::malformed, "the descriptor is not of a team's memory"}; }

} // namespace

result<team_memory> team_memory::make(troupe::descriptor file, std::uint32_t ranks,
                                      std::size_t room_floats) {
  assert(ranks > 0 && ranks <= ranks_max);
  const std::size_t room_of_rank = up_to_page(room_floats * sizeof(float));
  const std::size_t allocated = room_begin(ranks) + ranks * room_of_rank;
  const std::size_t size = allocated + room_of_rank;
  if (file) {
    const int error = ftruncate(file.get(), static_cast<off_t>(size)) != 0
                        ? errno
                        : posix_fallocate(file.get(), 0, static_cast<off_t>(allocated));
    if (error != 0)
      return no_memory(size, error);
  }
  detail::mapped_memory mapped{file.get(), 0, size, /* writable = */ true};
  if (!mapped)
    return no_memory(size, errno);
  team_memory made{std::move(file), std::move(mapped), size};
  new (made.begin()) header{magic, ranks, 1, 0, room_of_rank / sizeof(float)};
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    new (&made.line(rank)) team_line;
  return made;
}

result<team_memory> team_memory::of_threads(std::uint32_t ranks) {
  return make(troupe::descriptor{}, ranks, 0);
}

result<team_memory> team_memory::of_processes(std::uint32_t ranks, std::size_t room_floats) {
  if (ranks > ranks_max)
    return {errc::invalid_argument, "a team in shared memory has at most "
                                      + std::to_string(ranks_max) + " ranks, not "
                                      + std::to_string(ranks)};
  troupe::descriptor file{memfd_create("troupe-team", MFD_CLOEXEC)};
  if (!file)
    return no_memory(room_begin(ranks) + ranks * room_floats * sizeof(float), errno);
  return make(std::move(file), ranks, room_floats);
}

result<team_memory> team_memory::attach(int descriptor) {
  struct stat about {};
  if (fstat(descriptor, &about) != 0 || static_cast<std::size_t>(about.st_size) < page)
    return not_of_a_team();
  const auto size = static_cast<std::size_t>(about.st_size);
  troupe::descriptor own{fcntl(descriptor, F_DUPFD_CLOEXEC, 0)};
  if (!own)
    return no_memory(size, errno);
  detail::mapped_memory mapped{own.get(), 0, size, /* writable = */ true};
  if (!mapped)
    return no_memory(size, errno);
  team_memory made{std::move(own), std::move(mapped), size};
  const auto& head = made.head();
  if (head.magic != magic || head.ranks == 0 || head.ranks > ranks_max
      || size != room_begin(head.ranks) + (head.ranks + 1) * head.room_floats * sizeof(float))
    return not_of_a_team();
  return made;
}

const team_memory::header& team_memory::head() const {
  static_assert(sizeof(header) <= lines_begin);
  return *reinterpret_cast<const header*>(begin());
}

std::uint32_t team_memory::ranks() const { return head().ranks; }

team_line& team_memory::line(std::uint32_t rank) const {
  return reinterpret_cast<team_line*>(begin() + lines_begin)[rank];
}

std::uint32_t team_memory::round() const { return head().round.load(); }

std::uint32_t team_memory::enter(std::uint32_t rank, std::uint32_t generation) const {
  auto& current = reinterpret_cast<header*>(begin())->round;
  auto& own = line(rank);
  auto round = current.load();
  while (own.entered.reached(round))
    if (current.compare_exchange_strong(round, round + 1))
      ++round;
  // A rank that still waits for this one in an earlier round looks at the round's number next.
  own.done.publish(0);
  own.generation = generation;
  own.slot = rank_slot::taken;
  own.entered.publish(round);
  wake_all();
  return round;
}

std::atomic<std::uint64_t>& team_memory::failure() const {
  return reinterpret_cast<header*>(begin())->failure;
}

void team_memory::wake_all() const {
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    line(rank).done.wake();
    line(rank).entered.wake();
  }
}

std::span<float> team_memory::slot(std::uint32_t rank, std::uint32_t parity) const {
  auto* slots = reinterpret_cast<float*>(begin() + slots_begin(ranks()));
  return {slots + (2 * rank + parity) * team_slot_floats, team_slot_floats};
}

std::span<float> team_memory::part(std::uint32_t rank) const {
  auto* parts = reinterpret_cast<float*>(begin() + parts_begin(ranks()));
  return {parts + rank * team_part_floats, team_part_floats};
}

std::span<float> team_memory::room(std::uint32_t rank) const {
  auto* rooms = reinterpret_cast<float*>(begin() + room_begin(ranks()));
  return {rooms + rank * head().room_floats, head().room_floats};
}

std::optional<std::uint64_t> team_memory::offset_of(std::span<const float> numbers) const {
  const auto* from = reinterpret_cast<const std::byte*>(numbers.data());
  const auto* room_from = begin() + room_begin(ranks());
  if (std::less{}(from, room_from) || std::less{}(begin() + size_, from + numbers.size_bytes()))
    return std::nullopt;
  return static_cast<std::uint64_t>(from - begin());
}

int team_memory::lock_slot(std::uint32_t rank) const {
  // An OFD lock belongs to an open file. A file opened here ends with this process, in any way,
  // while copies of the team's descriptor may live on.
  const auto path = "/proc/self/fd/" + std::to_string(descriptor_.get());
  const int own = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  if (own >= 0 && fcntl(own, F_OFD_SETLK, &lock) != 0) {
    close(own);
    return -1;
  }
  return own;
}

bool team_memory::slot_is_locked(std::uint32_t rank) const {
  if (!descriptor_)
    return true;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return fcntl(descriptor_.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

} // namespace troupe::kernels
