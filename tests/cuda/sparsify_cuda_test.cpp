// Checks that `top_k` and `random_k` on a stream give the CPU's bytes.
#include "kernels/sparsify.hpp"
#include "tests/cuda/same_bytes.hpp"
#include "tests/cuda/under_test.hpp"
#include "tests/numbers.hpp"

#include <bit>
#include <limits>

namespace troupe::test::sparsify_cuda_test {

namespace {

/// Kinds of magnitudes. `extreme`: of all exponents. `few`: five values, so that ties cross threads
/// and tiles. `same`: all equal. `not_finite`: some are NaN or infinite.
enum class magnitudes { different, extreme, few, same, not_finite };

std::vector<float> make(magnitudes which, std::size_t count, std::uint64_t seed) {
  numbers random{seed};
  auto all = which == magnitudes::extreme ? random.extremes(count) : random.units(count);
  for (float& x : all)
    switch (which) {
    case magnitudes::few: x = std::copysign(static_cast<float>(random.next() % 5) / 4, x); break;
    case magnitudes::same: x = std::copysign(0.25f, x); break;
    case magnitudes::not_finite: // One in 37 is a NaN of any payload, or an infinity.
      if (const auto drawn = random.next(); drawn % 37 == 0)
        x = drawn % 2 == 0
              ? std::numeric_limits<float>::infinity()
              : std::bit_cast<float>(static_cast<std::uint32_t>(drawn >> 32) | 0x7f800001);
      break;
    default: break;
    }
  return all;
}

std::vector<std::size_t> ks_of(std::size_t count) {
  std::vector<std::size_t> ks{0};
  for (const std::size_t k : {std::size_t{1}, std::size_t{2}, count / 100, count / 3, count - 1})
    if (k > ks.back() && k < count)
      ks.push_back(k);
  if (count > 0)
    ks.push_back(count);
  return ks;
}

/// Checks two steps; the second starts from the first one's residual.
void check_top(bench_device& at, magnitudes which, std::size_t count, std::size_t k) {
  CAPTURE(static_cast<int>(which));
  CAPTURE(count);
  CAPTURE(k);
  std::vector<float> residual_wanted(count), wanted(k);
  std::vector<std::uint32_t> places_wanted(k);
  const auto residual = at.upload(residual_wanted);
  const auto values = at.upload(std::vector<float>(k, 77.0f));
  const auto places = at.upload(std::vector<std::uint32_t>(k, 77));
  const auto scratch =
    at.upload(std::vector<std::uint32_t>(kernels::top_k_scratch(count), 0xdeadbeef));
  for (std::uint64_t step = 0; step < 2; ++step) {
    const auto added = make(which, count, count + step);
    const auto x = at.upload(added);
    kernels::top_k(added, residual_wanted, places_wanted, wanted);
    kernels::top_k(at.stream(), x.span(), residual.span(), places.span(), values.span(),
                   scratch.span());
    CHECK(at.download(places) == places_wanted);
    CHECK(same_bytes(at.download(values), wanted));
    CHECK(same_bytes(at.download(residual), residual_wanted));
  }
}

} // namespace

TEST_CASE("devices: the k largest are those of the CPU, in their order, and so is what stays") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  for (const auto which : {magnitudes::different, magnitudes::extreme, magnitudes::few,
                           magnitudes::same, magnitudes::not_finite}) {
    for (const std::size_t count : {0, 1, 3, 255, 257, 1023, 1024, 1025, 20'003})
      for (const std::size_t k : ks_of(count))
        check_top(at, which, count, k);
    // There are more tiles here than a block has threads.
    check_top(at, which, 300'007, 3000);
  }
}

TEST_CASE("devices: k at random are those of the CPU, and they are put where the CPU puts them") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  for (const std::size_t count : device_sizes)
    for (const std::size_t k : ks_of(count)) {
      if (k == 0 && count > 0)
        continue;
      CAPTURE(count);
      CAPTURE(k);
      numbers random{count};
      const auto added = random.extremes(count);
      auto residual_wanted = random.extremes(count);
      std::vector<float> wanted(k), back_wanted(count);
      const auto x = at.upload(added), residual = at.upload(residual_wanted);
      const auto values = at.upload(std::vector<float>(k, 77.0f));
      const auto back = at.upload(std::vector<float>(count, 77.0f));
      kernels::random_k(added, residual_wanted, 7, wanted);
      kernels::random_k(at.stream(), x.span(), residual.span(), 7, values.span());
      kernels::put_random_k(wanted, 7, back_wanted);
      kernels::put_random_k(at.stream(), values.span(), 7, back.span());
      CHECK(same_bytes(at.download(values), wanted));
      CHECK(same_bytes(at.download(residual), residual_wanted));
      CHECK(same_bytes(at.download(back), back_wanted));
    }
}

} // namespace troupe::test::sparsify_cuda_test
