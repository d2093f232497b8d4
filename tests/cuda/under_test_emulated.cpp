#include "kernels/devices/emulated_platform.hpp"
#include "tests/cuda/under_test.hpp"

namespace troupe::test {

std::unique_ptr<device_platform> platform_under_test() { return emulate_devices({.devices = 4}); }

} // namespace troupe::test
