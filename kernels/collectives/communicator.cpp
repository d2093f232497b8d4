#include "kernels/collectives/communicator.hpp"

#include "kernels/schedules/strategies.hpp"

#include <array>
#include <cstring>

namespace troupe::kernels {

namespace {

/// A 64-bit number takes the place of two floats, which are only copied.
constexpr std::size_t floats_per_number = 2;

} // namespace

result<void> communicator::sum(std::span<float> numbers) {
  const std::array whole{numbers};
  begin(whole);
  return finish();
}

result<std::vector<std::uint64_t>> communicator::gather(std::uint64_t own) {
  std::vector<float> numbers(floats_per_number * ranks());
  std::memcpy(numbers.data() + floats_per_number * rank(), &own, sizeof(own));
  if (auto done = carry_out(block(ranks(), 1, collective::all_gather), numbers); !done)
    return done.error();
  std::vector<std::uint64_t> all(ranks());
  std::memcpy(all.data(), numbers.data(), all.size() * sizeof(std::uint64_t));
  return all;
}

} // namespace troupe::kernels
