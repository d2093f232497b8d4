#include "base/system/leave_process.hpp"

#include <poll.h>
#include <unistd.h>

#include <cstdio>

namespace troupe {

namespace {

bool can_write(int descriptor) {
  pollfd writing{descriptor, POLLOUT, 0};
  return poll(&writing, 1, 0) > 0 && (writing.revents & POLLOUT) != 0;
}

} // namespace

void write_without_waiting(const std::string& line) {
  if (!can_write(STDERR_FILENO))
    return;
  const auto text = line + "\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

void leave_process(int status, const std::string& line) {
  if (ftrylockfile(stdout) == 0 && can_write(STDOUT_FILENO))
    fflush_unlocked(stdout);
  if (!line.empty())
    write_without_waiting(line);
  _exit(status);
}

} // namespace troupe
