// The kernels that put floats into fewer bytes, and back. The encoded numbers are in m.bytes.
#include "bench/kernels/kernel_contest.hpp"

#include "kernels/half.hpp"
#include "kernels/int8.hpp"
#include "kernels/onebit.hpp"
#include "kernels/sparsify.hpp"

#include <functional>
#include <utility>

namespace troupe::bench {

namespace {

using namespace kernels;

/// Arrays of numbers in m.bytes, one behind the other.
struct packed_memory {
  explicit packed_memory(kernel_memory& m) : at(m.bytes.data()) {}

  template <class T>
  std::span<T> take(std::size_t count) {
    const std::span made{reinterpret_cast<T*>(at), count};
    at += (made.size_bytes() + 7) / 8 * 8;
    return made;
  }

  std::uint8_t* at;
};

constexpr std::size_t parts_of(std::size_t count, std::size_t size) {
  return (count + size - 1) / size;
}

} // namespace

void add_codecs(kernel_contest& contest, kernel_memory& m) {
  const auto add = [&](const char* name, double bytes, std::function<void()> run) {
    contest.add(name, "troupe", bytes, std::move(run));
  };
  auto &x = m.v[0], &residual = m.v[1], &y = m.v[7];
  const std::size_t n = m.count, k = parts_of(n, 100);
  packed_memory of_half{m}, of_int8{m}, of_onebit{m}, of_top{m};
  const auto half = of_half.take<std::uint16_t>(n);
  const auto scales = of_int8.take<float>(parts_of(n, int8_block));
  const auto bytes = of_int8.take<std::int8_t>(n);
  const auto means = of_onebit.take<float>(2 * parts_of(n, onebit_block));
  const auto bits = of_onebit.take<std::uint8_t>(parts_of(n, 8));
  const auto values = of_top.take<float>(k);
  const auto places = of_top.take<std::uint32_t>(k);
  const double of_scales = 4.0 / int8_block, of_means = 8.0 / onebit_block;
  // The numbers that are read were written by the same format's other kernel just before.
  add("to fp16", 4 + 2, [=, &x] { to_fp16(x, half); });
  add("from fp16", 4 + 2, [=, &y] { from_fp16(half, y); });
  add("to bf16", 4 + 2, [=, &x] { to_bf16(x, half); });
  add("from bf16", 4 + 2, [=, &y] { from_bf16(half, y); });
  add("to int8", 4 + 1 + of_scales, [=, &x] { to_int8(x, bytes, scales); });
  add("to int8, random", 4 + 1 + of_scales, [=, &x] { to_int8_stochastic(x, 7, bytes, scales); });
  add("from int8", 4 + 1 + of_scales, [=, &y] { from_int8(bytes, scales, y); });
  add("to onebit", 4 * 3 + 0.125 + of_means,
      [=, &x, &residual] { to_onebit(x, residual, bits, means); });
  add("from onebit", 4 + 0.125 + of_means, [=, &y] { from_onebit(bits, means, y); });
  add("top_k of 1 %", 4 * 3 + 0.08, [=, &x, &residual] { top_k(x, residual, places, values); });
  add("random_k of 1 %", 4 * 3 + 0.04, [=, &x, &residual] { random_k(x, residual, 7, values); });
  add("put_random_k of 1 %", 4 + 0.04, [=, &y] { put_random_k(values, 7, y); });
}

} // namespace troupe::bench
