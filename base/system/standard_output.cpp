#include "base/system/standard_output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace troupe {

result<void> flush_standard_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0)
    return {};
  return {errc::io_failed, std::string{"cannot write its output: "} + std::strerror(errno)};
}

} // namespace troupe
