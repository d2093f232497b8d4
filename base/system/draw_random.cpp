#include "base/system/draw_random.hpp"

#include <sys/random.h>

namespace troupe {

std::uint64_t draw_random() {
  std::uint64_t number = 0;
  while (number == 0)
    if (getrandom(&number, sizeof number, 0) != sizeof number)
      number = 0;
  return number;
}

} // namespace troupe
