#include "base/system/files.hpp"

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
#include <system_error>
#include <utility>

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

/// Syncs a directory, so that a file's name survives a loss of power.
bool sync_directory(const std::filesystem::path& path) {
  const int directory = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = directory >= 0 && fsync(directory) == 0;
  const int problem = errno;
  if (directory >= 0)
    close(directory);
  errno = problem;
  return synced;
}

failure cannot_write(const std::filesystem::path& path, int problem) {
  return {errc::io_failed, "cannot write " + path.string() + ": " + std::strerror(problem)};
}

/// Writes the text to a temporary file beside its path; returns that file's name.
result<std::string> write_beside(const file_text& what) {
  namespace fs = std::filesystem;
  std::error_code none_there;
  if (fs::is_directory(fs::symlink_status(what.path, none_there)))
    return cannot_write(what.path, EISDIR); // `rename()` would fail only after others are replaced.
  if (fs::is_other(fs::status(what.path, none_there))) // As root, `rename()` could replace
                                                       // /dev/null.
    return failure{errc::io_failed, "cannot write " + what.path.string() + ": it is not a file"};
  auto fresh = what.path.string() + ".XXXXXX";
  const int file = mkostemp(fresh.data(), O_CLOEXEC); // Mode 0600.
  const bool written =
    file >= 0 && write_all(file, what.text) && fchmod(file, what.mode) == 0 && fsync(file) == 0;
  const int problem = errno;
  if (file >= 0)
    close(file);
  if (written)
    return fresh;
  if (file >= 0)
    unlink(fresh.c_str());
  return cannot_write(what.path, problem);
}

bool put_in_place(const std::string& fresh, const std::filesystem::path& path) {
  return rename(fresh.c_str(), path.c_str()) == 0
         && sync_directory(path.has_parent_path() ? path.parent_path() : ".");
}

} // namespace

result<void> write_files(const std::vector<file_text>& files) {
  std::vector<std::string> fresh;
  const auto give_up = [&fresh](failure why) -> result<void> {
    for (const auto& name : fresh)
      unlink(name.c_str()); // Files already in place no longer have this name.
    return why;
  };
  for (const auto& each : files) {
    auto written = write_beside(each);
    if (!written)
      return give_up(written.error());
    fresh.push_back(*std::move(written));
  }
  for (std::size_t i = 0; i < files.size(); ++i)
    if (!put_in_place(fresh[i], files[i].path))
      return give_up(cannot_write(files[i].path, errno));
  return {};
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
