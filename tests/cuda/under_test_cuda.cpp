#include "tests/cuda/under_test.hpp"

#include <cstdio>

namespace troupe::test {

std::unique_ptr<device_platform> platform_under_test() {
  auto cuda = open_cuda();
  if (cuda)
    return *std::move(cuda);
  std::printf("SKIPPED: no CUDA device (%s)\n", cuda.error().text.c_str());
  return nullptr;
}

} // namespace troupe::test
