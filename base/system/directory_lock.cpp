#include "base/system/directory_lock.hpp"

#include "base/system/file.hpp"

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <fcntl.h>
#include <random>
#include <string>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

namespace troupe::storage {

namespace fs = std::filesystem;

namespace {

/// Returns the holder's pid, or "unknown" if the holder has not written it yet.
std::string holder_of(const fs::path& file) {
  const auto text = read_file(file, 64);
  if (!text)
    return "unknown";
  const auto digits = text->substr(0, text->find_first_not_of("0123456789"));
  return digits.empty() ? "unknown" : digits;
}

std::uint64_t draw_mark() {
  std::random_device source;
  return (std::uint64_t{source()} << 32 | source()) | 1; // Never 0, which stands for no mark.
}

} // namespace

result<directory_lock> directory_lock::acquire(const fs::path& directory) {
  if (auto made = make_directory(directory); !made)
    return made.error();
  const auto file = directory / "LOCK";
  const int number = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (number < 0)
    return io_failure("open", file, errno);
  directory_lock lock{descriptor{number}};
  int locked = 0;
  do
    locked = ::flock(number, LOCK_EX | LOCK_NB);
  while (locked != 0 && errno == EINTR);
  if (locked != 0 && errno != EWOULDBLOCK)
    return io_failure("lock", file, errno);
  if (locked != 0)
    return {errc::in_use, "another process uses the directory: " + directory.string() + ", pid "
                            + holder_of(file)};
  // The pid is for people. On a full disk pid and mark are missing, but the lock still holds.
  const auto text = std::to_string(::getpid()) + " " + std::to_string(draw_mark()) + "\n";
  if (::ftruncate(number, 0) == 0)
    (void)!::pwrite(number, text.data(), text.size(), 0);
  (void)!::fdatasync(number); // Other hosts that share the directory must see it.
  return lock;
}

std::optional<std::uint64_t> directory_mark(const fs::path& directory) {
  const auto text = read_file(directory / "LOCK", 64);
  const auto space = text ? text->find(' ') : std::string::npos;
  if (space == std::string::npos)
    return std::nullopt;
  std::uint64_t mark = 0;
  const char* const last = text->data() + text->size();
  if (std::from_chars(text->data() + space + 1, last, mark).ec != std::errc{})
    return std::nullopt;
  return mark;
}

} // namespace troupe::storage
