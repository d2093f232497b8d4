#include "base/system/own_executable.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace troupe {

std::filesystem::path own_executable() {
  const char* const running = "/proc/self/exe";
  // A name without a slash was found through PATH: the kernel started the file, not a loader.
  if (std::strchr(program_invocation_name, '/') == nullptr)
    return running;
  struct stat started {
  }, named{};
  if (stat(program_invocation_name, &named) != 0 || !S_ISREG(named.st_mode))
    return running;
  const bool is_same = stat(running, &started) == 0 && started.st_dev == named.st_dev
                       && started.st_ino == named.st_ino;
  return is_same ? running : std::filesystem::absolute(program_invocation_name);
}

} // namespace troupe
