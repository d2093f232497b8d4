#include "cli/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

namespace troupe {

namespace {

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno != EINTR)
      return false;
    text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  return true;
}

/// So that the name leads to the new file even after a loss of power.
bool sync_directory(const std::filesystem::path& path) {
  const int directory = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = directory >= 0 && fsync(directory) == 0;
  const int problem = errno;
  if (directory >= 0)
    close(directory);
  errno = problem;
  return synced;
}

} // namespace

result<void> write_file(const std::filesystem::path& path, const std::string& text, mode_t mode) {
  auto fresh = path.string() + ".XXXXXX";
  const int file = mkostemp(fresh.data(), O_CLOEXEC); // Mode 0600.
  const auto folder = path.has_parent_path() ? path.parent_path() : ".";
  const bool written = file >= 0 && write_all(file, text) && fchmod(file, mode) == 0
                       && fsync(file) == 0 && rename(fresh.c_str(), path.c_str()) == 0
                       && sync_directory(folder);
  const int problem = errno;
  if (file >= 0)
    close(file);
  if (written)
    return {};
  if (file >= 0)
    unlink(fresh.c_str());
  return {errc::io_failed, "cannot write " + path.string() + ": " + std::strerror(problem)};
}

result<std::string> read_file(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream file{path, std::ios::binary};
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    return {errc::io_failed, "cannot read " + path.string() + ": "
                               + (errno == 0 ? "it is empty" : std::strerror(errno))};
  return text.str();
}

} // namespace troupe
