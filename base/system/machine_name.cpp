#include "base/system/machine_name.hpp"

#include <unistd.h>

#include <array>

namespace troupe {

std::string machine_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

} // namespace troupe
