#include "cli/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace troupe {

result<void> write_file(const std::filesystem::path& path, const std::string& text, mode_t mode) {
  const auto fresh = path.string() + ".new";
  unlink(fresh.c_str()); // Left by a run that was killed, perhaps readable by others.
  const int file = open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  bool written =
    file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  int problem = errno;
  if (file >= 0 && close(file) != 0 && written) {
    problem = errno;
    written = false;
  }
  if (written && rename(fresh.c_str(), path.c_str()) == 0)
    return {};
  if (written)
    problem = errno;
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
