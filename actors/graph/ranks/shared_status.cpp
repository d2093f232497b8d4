#include "actors/graph/ranks/shared_status.hpp"

#include "base/system/descriptor.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace troupe {

namespace {

constexpr std::size_t lines_begin = 1024;

std::size_t parameters_begin(std::uint32_t ranks) {
  return (lines_begin + ranks * sizeof(rank_line) + 4095) / 4096 * 4096;
}

std::filesystem::path file_in(const std::filesystem::path& run_directory) {
  return run_directory / "board";
}

failure problem(const std::filesystem::path& file, int error) {
  return {errc::io_failed, "cannot use " + file.string() + ": " + std::strerror(error)};
}

} // namespace

result<shared_status> shared_status::map(const std::filesystem::path& file, std::size_t size) {
  const descriptor opened{::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  if (!opened)
    return problem(file, errno);
  if (size > 0) {
    // Reserves the space now: on a full disk, a page that is missing later would end a process.
    const int made = ftruncate(opened.get(), 0) == 0
                       ? posix_fallocate(opened.get(), 0, static_cast<off_t>(size))
                       : errno;
    if (made != 0)
      return problem(file, made);
  }
  struct stat about {};
  if (fstat(opened.get(), &about) != 0)
    return problem(file, errno);
  const auto bytes = static_cast<std::size_t>(about.st_size);
  if (bytes < lines_begin)
    return {errc::damaged, "the file is too short: " + file.string()};
  detail::mapped_memory mapped{opened.get(), 0, bytes, /* writable = */ true};
  if (!mapped)
    return problem(file, errno);
  return shared_status{std::move(mapped)};
}

result<shared_status> shared_status::create(const std::filesystem::path& run_directory,
                                            std::uint32_t ranks, std::size_t parameters) {
  auto made = map(file_in(run_directory), parameters_begin(ranks) + parameters * sizeof(float));
  if (!made)
    return made;
  auto* head = new (made->memory_.data()) header;
  head->ranks = ranks;
  head->parameters_count = parameters;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    new (&made->line(rank)) rank_line;
  return made;
}

result<shared_status> shared_status::open(const std::filesystem::path& run_directory) {
  return map(file_in(run_directory), 0);
}

rank_line& shared_status::line(std::uint32_t rank) const {
  static_assert(sizeof(header) <= lines_begin);
  return reinterpret_cast<rank_line*>(memory_.data() + lines_begin)[rank];
}

std::span<float> shared_status::parameters() const {
  return {reinterpret_cast<float*>(memory_.data() + parameters_begin(head().ranks)),
          head().parameters_count};
}

} // namespace troupe
