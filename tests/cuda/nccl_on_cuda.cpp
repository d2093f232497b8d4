// Tests the group with NVIDIA's library. The tests with a stand-in are in tests/kernels.
#include "kernels/devices/nccl.hpp"
#include "tests/cuda/under_test.hpp"
#include "tests/numbers.hpp"

#include <cmath>
#include <cstdio>
#include <numeric>

namespace troupe::test::nccl_on_cuda {

TEST_CASE("devices: NCCL adds up on all devices that there are") {
  const auto on = platform_under_test();
  if (!on)
    return;
  const auto api = nccl_api::load();
  if (!api) {
    std::printf("SKIPPED: %s\n", api.error().text.c_str());
    return;
  }
  std::vector<std::uint32_t> all(on->devices());
  std::iota(all.begin(), all.end(), 0u);
  auto group = must(nccl_group::make(*on, *api, all));
  for (const std::size_t count : {1u, 257u, 100'003u}) {
    numbers random{count};
    std::vector<std::vector<float>> values;
    std::vector<device_memory<float>> in, out;
    std::vector<nccl_group::share> shares;
    for (const std::uint32_t device : all) {
      bench_device at{*on, device};
      values.push_back(random.units(count));
      in.push_back(at.upload(values.back()));
      out.push_back(at.upload(std::vector<float>(count, -1.0f)));
      shares.push_back({in.back().span(), out.back().span()});
    }
    for (int times = 0; times < 3; ++times)
      must(group.all_reduce(shares));
    for (const std::uint32_t device : all) {
      const auto found = bench_device{*on, device}.download(out[device]);
      for (std::size_t i = 0; i < count; ++i) {
        double sum = 0, size = 0;
        for (const auto& x : values) {
          sum += x[i];
          size += std::abs(x[i]);
        }
        // Each of n - 1 additions rounds once; one share comes back as it is.
        const double bound = static_cast<double>(all.size() - 1) * size * 0x1p-24;
        if (!(std::abs(found[i] - sum) <= bound))
          FAIL("element " << i << " on device " << device << ": " << found[i] << ", not " << sum);
      }
    }
  }
}

} // namespace troupe::test::nccl_on_cuda
