#include "actors/tables/packing.hpp"

#include "kernels/half.hpp"
#include "kernels/int8.hpp"
#include "kernels/onebit.hpp"
#include "kernels/sparsify.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace troupe {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t stretch = 65536; ///< topk: elements that 16 bits can address.

constexpr std::uint64_t parts_of(std::uint64_t count, std::uint64_t size) {
  return (count + size - 1) / size;
}
constexpr std::size_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

std::uint64_t taken(double fraction, std::uint64_t count) {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(count)));
  return std::min(std::max(wanted, std::uint64_t{1}), count);
}

std::size_t topk_bytes(std::uint64_t k, std::uint64_t count) {
  return padded(4 + 4 * k + 4 * parts_of(count, stretch) + 2 * k);
}
std::size_t randomk_bytes(std::uint64_t k) { return padded(12 + 4 * k); }

/// Returns the bytes of an encoding whose size depends only on `count`; 0 for other encodings.
std::size_t plain_bytes(encoding how, std::uint64_t count) {
  switch (how) {
  case encoding::fp16:
  case encoding::bf16: return padded(2 * count);
  case encoding::int8: return padded(4 * parts_of(count, kernels::int8_block) + count);
  case encoding::onebit:
    return padded(8 * parts_of(count, kernels::onebit_block) + parts_of(count, 8));
  default: return 0;
  }
}

/// Hands out consecutive arrays of numbers.
template <class Byte>
class cursor {
public:
  explicit cursor(std::span<Byte> bytes) : rest_(bytes) {}

  /// Requires: `count` numbers are left, and aligned.
  template <class T>
  auto take(std::uint64_t count) {
    using number = std::conditional_t<std::is_const_v<Byte>, const T, T>;
    assert(rest_.size() >= count * sizeof(T));
    assert(reinterpret_cast<std::uintptr_t>(rest_.data()) % alignof(T) == 0);
    const std::span<number> all{reinterpret_cast<number*>(rest_.data()),
                                static_cast<std::size_t>(count)};
    rest_ = rest_.subspan(all.size_bytes());
    return all;
  }
  std::size_t size() const { return rest_.size(); }
  std::span<Byte> rest() const { return rest_; }

private:
  std::span<Byte> rest_;
};

template <class T>
T number_at(std::span<const std::byte> bytes, std::size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

void pack_topk(std::uint64_t k, std::span<const float> x, std::span<float> residual,
               cursor<std::byte>& to) {
  thread_local std::vector<std::uint32_t> places; // Grows to the largest block.
  places.resize(k);
  to.take<std::uint32_t>(1)[0] = static_cast<std::uint32_t>(k);
  kernels::top_k(x, residual, places, to.take<float>(k));
  const auto counts = to.take<std::uint32_t>(parts_of(x.size(), stretch));
  std::ranges::fill(counts, 0u);
  const auto within = to.take<std::uint16_t>(k);
  for (std::size_t i = 0; i < k; ++i) {
    ++counts[places[i] / stretch];
    within[i] = static_cast<std::uint16_t>(places[i] % stretch);
  }
}

void pack_randomk(std::uint64_t k, std::span<const float> x, std::span<float> residual,
                  std::uint64_t seed, cursor<std::byte>& to) {
  to.take<std::uint64_t>(1)[0] = seed;
  to.take<std::uint32_t>(1)[0] = static_cast<std::uint32_t>(k);
  kernels::random_k(x, residual, seed, to.take<float>(k));
}

result<void> malformed(const char* what) {
  return {errc::malformed, std::string{"packed values "} + what};
}

/// Unpacks topk. Places are copied, some at a time, before they are checked, so that the checked
/// places are the ones that are used.
result<void> unpack_topk(std::span<const std::byte> from, std::span<float> y) {
  const std::uint64_t k = from.size() < 8 ? 0 : number_at<std::uint32_t>(from, 0);
  if (k == 0 || k > y.size() || from.size() != topk_bytes(k, y.size()))
    return malformed("of another length than their elements take");
  cursor<const std::byte> at{from.subspan(4)};
  const auto values = at.take<float>(k);
  const auto counts = at.take<std::uint32_t>(parts_of(y.size(), stretch));
  const auto within = at.take<std::uint16_t>(k);
  std::ranges::fill(y, 0.0f);
  std::uint64_t done = 0;
  for (std::size_t part = 0; part < counts.size(); ++part) {
    const std::uint32_t count = number_at<std::uint32_t>(std::as_bytes(counts), 4 * part);
    const std::uint64_t first = part * stretch;
    if (count > k - done)
      return malformed("with more places than values");
    std::int64_t last = -1;
    std::array<std::uint16_t, 512> copied;
    for (std::uint64_t end = done + count; done < end;) {
      const auto now = std::min<std::uint64_t>(copied.size(), end - done);
      std::memcpy(copied.data(), within.data() + done, now * sizeof copied[0]);
      for (std::size_t i = 0; i < now; ++i) {
        if (copied[i] <= last || first + copied[i] >= y.size())
          return malformed("whose places do not ascend");
        last = copied[i];
        y[first + copied[i]] = values[done + i];
      }
      done += now;
    }
  }
  return done == k ? result<void>{} : malformed("with fewer places than values");
}

result<void> unpack_randomk(std::span<const std::byte> from, std::span<float> y) {
  const std::uint64_t k = from.size() < 16 ? 0 : number_at<std::uint32_t>(from, 8);
  if (k == 0 || k > y.size() || from.size() != randomk_bytes(k))
    return malformed("of another length than their elements take");
  cursor<const std::byte> at{from.subspan(12)};
  kernels::put_random_k(at.take<float>(k), number_at<std::uint64_t>(from, 0), y);
  return {};
}

} // namespace

std::size_t packed_bytes(const compression& how, std::uint64_t count) {
  assert(how.how != encoding::f32 && count <= packed_elements_max);
  if (count == 0)
    return 0;
  if (how.how == encoding::topk)
    return topk_bytes(taken(how.fraction, count), count);
  if (how.how == encoding::randomk)
    return randomk_bytes(taken(how.fraction, count));
  return plain_bytes(how.how, count);
}

void pack(const compression& how, std::span<const float> x, std::span<float> residual,
          const std::uint64_t* seed, std::span<std::byte> to) {
  assert(to.size() == packed_bytes(how, x.size()));
  assert(residual.size() == (how.keeps_residual() ? x.size() : 0));
  if (x.empty())
    return;
  cursor<std::byte> at{to};
  switch (how.how) {
  case encoding::f32: assert(false); return;
  case encoding::fp16: kernels::to_fp16(x, at.take<std::uint16_t>(x.size())); break;
  case encoding::bf16: kernels::to_bf16(x, at.take<std::uint16_t>(x.size())); break;
  case encoding::int8: {
    const auto scales = at.take<float>(parts_of(x.size(), kernels::int8_block));
    const auto numbers = at.take<std::int8_t>(x.size());
    if (seed == nullptr)
      kernels::to_int8(x, numbers, scales);
    else
      kernels::to_int8_stochastic(x, *seed, numbers, scales);
    break;
  }
  case encoding::onebit: {
    const auto means = at.take<float>(2 * parts_of(x.size(), kernels::onebit_block));
    kernels::to_onebit(x, residual, at.take<std::uint8_t>(parts_of(x.size(), 8)), means);
    break;
  }
  case encoding::topk: pack_topk(taken(how.fraction, x.size()), x, residual, at); break;
  case encoding::randomk:
    assert(seed != nullptr);
    pack_randomk(taken(how.fraction, x.size()), x, residual, *seed, at);
    break;
  }
  std::ranges::fill(at.rest(), std::byte{0});
}

result<void> unpack(encoding how, std::span<const std::byte> from, std::span<float> y) {
  if (y.size() > packed_elements_max)
    return malformed("of more elements than a block has");
  if (y.empty())
    return from.empty() ? result<void>{} : malformed("of nothing");
  if (how == encoding::topk)
    return unpack_topk(from, y);
  if (how == encoding::randomk)
    return unpack_randomk(from, y);
  if (from.empty() || from.size() != plain_bytes(how, y.size()))
    return malformed("of another length than their elements take");
  cursor<const std::byte> at{from};
  if (how == encoding::fp16) {
    kernels::from_fp16(at.take<std::uint16_t>(y.size()), y);
  } else if (how == encoding::bf16) {
    kernels::from_bf16(at.take<std::uint16_t>(y.size()), y);
  } else if (how == encoding::int8) {
    const auto scales = at.take<float>(parts_of(y.size(), kernels::int8_block));
    kernels::from_int8(at.take<std::int8_t>(y.size()), scales, y);
  } else {
    const auto means = at.take<float>(2 * parts_of(y.size(), kernels::onebit_block));
    kernels::from_onebit(at.take<std::uint8_t>(parts_of(y.size(), 8)), means, y);
  }
  return {};
}

} // namespace troupe
