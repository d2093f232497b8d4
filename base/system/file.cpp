#include "base/system/file.hpp"

#include "base/crc32c.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <span>
#include <sstream>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace troupe {

namespace fs = std::filesystem;

namespace {

/// Half of a usual second-level cache: a chunk is still there when its checksum is computed.
constexpr std::size_t chunk_bytes = 256 * 1024;

result<descriptor> open_file(const fs::path& path, int flags, std::string_view action) {
  int number = -1;
  do
    number = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  while (number < 0 && errno == EINTR);
  if (number < 0)
    return io_failure(action, path, errno);
  return descriptor{number};
}

result<void> sync_file(const descriptor& file, const fs::path& path) {
  if (const int problem = sync_bytes(file); problem != 0)
    return io_failure("sync", path, problem);
  return {};
}

/// Calls `sink(chunk)` for each chunk of the file.
template <class Sink>
result<file_sum> read_through(const descriptor& file, const fs::path& path, Sink sink) {
  std::vector<std::byte> chunk(chunk_bytes);
  file_sum sum;
  while (true) {
    const auto n = read_some(file, chunk, path);
    if (!n)
      return n.error();
    const std::span<const std::byte> bytes{chunk.data(), *n};
    sum.crc32c = storage::detail::crc32c(bytes, sum.crc32c);
    sum.size_bytes += bytes.size();
    if (auto stored = sink(bytes); !stored)
      return stored.error();
    if (bytes.size() < chunk.size())
      return sum;
  }
}

result<void> write_new_file(const fs::path& path, std::string_view content) {
  const auto file = create_file(path);
  if (!file)
    return file.error();
  if (auto done = write_all(*file, std::as_bytes(std::span{content}), path); !done)
    return done;
  return sync_file(*file, path);
}

} // namespace

failure io_failure(std::string_view action, const fs::path& path, int error) {
  return io_failure(action, path, std::error_code{error, std::generic_category()});
}

failure io_failure(std::string_view action, const fs::path& path, const std::error_code& error) {
  return {errc::io_failed,
          "cannot " + std::string{action} + " " + path.string() + ": " + error.message()};
}

result<descriptor> create_file(const fs::path& path) {
  return open_file(path, O_WRONLY | O_CREAT | O_TRUNC, "create");
}

result<descriptor> open_to_read(const fs::path& path) { return open_file(path, O_RDONLY, "open"); }

result<std::size_t> read_some(const descriptor& file, std::span<std::byte> into,
                              const fs::path& path) {
  std::size_t done = 0;
  while (done < into.size()) {
    const auto n = ::read(file.get(), into.data() + done, into.size() - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return io_failure("read", path, errno);
    if (n == 0)
      break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

result<void> write_all(const descriptor& file, std::span<const std::byte> bytes,
                       const fs::path& path) {
  if (const int problem = write_bytes(file, bytes); problem != 0)
    return io_failure("write", path, problem);
  return {};
}

int write_bytes(const descriptor& file, std::span<const std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto n = ::write(file.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return errno;
    done += static_cast<std::size_t>(n);
  }
  return 0;
}

// fsync is not repeated after a failure: the kernel marks the lost pages as clean, so that a second
// fsync would succeed.
int sync_bytes(const descriptor& file) { return ::fsync(file.get()) == 0 ? 0 : errno; }

result<std::string> read_file(const fs::path& path, std::size_t size_bytes_max) {
  const auto file = open_to_read(path);
  if (!file)
    return file.error();
  std::string content;
  const auto sum = read_through(*file, path, [&](std::span<const std::byte> bytes) -> result<void> {
    if (content.size() + bytes.size() > size_bytes_max)
      return io_failure("read", path, EFBIG);
    content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  });
  if (!sum)
    return sum.error();
  return content;
}

result<std::string> read_file(const fs::path& path) {
  errno = 0;
  std::ifstream file{path, std::ios::binary};
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    return {errc::io_failed, "cannot read " + path.string() + ": "
                               + (errno == 0 ? "it is empty" : std::strerror(errno))};
  return text.str();
}

result<void> replace_file(const fs::path& path, std::string_view content) {
  auto temporary = path;
  temporary += ".tmp";
  auto done = write_new_file(temporary, content);
  if (done && ::rename(temporary.c_str(), path.c_str()) != 0)
    done = io_failure("rename", temporary, errno);
  if (!done) {
    ::unlink(temporary.c_str());
    return done;
  }
  return sync_directory(path.parent_path());
}

result<file_sum> copy_file(const fs::path& from, const fs::path& to) {
  const auto source = open_to_read(from);
  if (!source)
    return source.error();
  const auto target = open_file(to, O_WRONLY | O_CREAT | O_EXCL, "create");
  if (!target)
    return target.error();
  off_t written = 0;
  auto sum = read_through(*source, from, [&](std::span<const std::byte> bytes) {
    auto done = write_all(*target, bytes, to);
    // A hint that starts the disk now, so that the fsync below has little left to do.
    (void)::sync_file_range(target->get(), written, static_cast<off_t>(bytes.size()),
                            SYNC_FILE_RANGE_WRITE);
    written += static_cast<off_t>(bytes.size());
    return done;
  });
  if (!sum)
    return sum;
  if (auto done = sync_file(*target, to); !done)
    return done.error();
  return sum;
}

result<file_sum> sum_file(const fs::path& path, bool from_disk) {
  const auto file = open_to_read(path);
  if (!file)
    return file.error();
  if (from_disk)
    (void)::posix_fadvise(file->get(), 0, 0, POSIX_FADV_DONTNEED);
  (void)::posix_fadvise(file->get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  return read_through(*file, path, [](std::span<const std::byte>) { return result<void>{}; });
}

result<void> sync_directory(const fs::path& directory) {
  const auto file = open_file(directory, O_RDONLY | O_DIRECTORY, "open");
  if (!file)
    return file.error();
  return sync_file(*file, directory);
}

result<void> make_directory(const fs::path& directory) {
  // If another process removes an empty parent meanwhile, the next try succeeds.
  constexpr int tries = 5;
  std::error_code error;
  for (int i = 0; i < tries; ++i) {
    fs::create_directories(directory, error);
    if (!error)
      return {};
  }
  return io_failure("create directory", directory, error);
}

result<void> remove_tree(const fs::path& directory) {
  std::error_code error;
  fs::remove_all(directory, error);
  if (error)
    return io_failure("remove", directory, error);
  return {};
}

} // namespace troupe
