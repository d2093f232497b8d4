#include "storage/detail/tensor_bytes.hpp"

#include "base/quote.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

namespace troupe::storage::detail {

// Values are stored as they lie in memory.
static_assert(std::endian::native == std::endian::little && sizeof(float) == 4);

namespace {

/// Returns whether the text is a valid name. Some readers end a name at a NUL.
bool is_name(std::string_view text) {
  return is_utf8(text) && text.find('\0') == std::string_view::npos;
}

/// Returns the bits of a number in either byte order.
std::uint64_t bits_at(const char* from, std::size_t bytes, bool big_endian) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    bits |= std::uint64_t{static_cast<unsigned char>(from[big_endian ? bytes - 1 - i : i])}
            << (8 * i);
  return bits;
}

/// Converts IEEE 754 binary16: a sign, 5 bits of exponent, 10 bits of fraction.
float from_half(std::uint32_t bits) {
  const std::uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  float size = std::ldexp(static_cast<float>(fraction), -24); // A subnormal number.
  if (exponent == 0x1f)
    size = fraction == 0 ? std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  else if (exponent > 0)
    size = std::ldexp(static_cast<float>(fraction + 0x400), static_cast<int>(exponent) - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

/// Returns nullopt if the value is finite and too large for f32.
std::optional<float> number_at(const char* from, number_format format) {
  using kind = number_format::kind;
  const std::uint64_t bits = bits_at(from, format.bytes(), format.big_endian);
  const auto low = static_cast<std::uint32_t>(bits);
  switch (format.type) {
  case kind::f16: return from_half(low);
  case kind::bf16: return std::bit_cast<float>(low << 16);
  case kind::f64: break;
  default: return std::bit_cast<float>(low);
  }
  const auto value = std::bit_cast<double>(bits);
  if (std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max())
    return std::nullopt;
  return static_cast<float>(value);
}

} // namespace

std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape) {
  std::uint64_t count = 1;
  bool overflow = false;
  for (const std::uint64_t extent : shape) {
    if (extent == 0)
      return 0;
    overflow = __builtin_mul_overflow(count, extent, &count) || overflow;
  }
  return overflow ? std::nullopt : std::optional{count};
}

std::string_view bytes_of_values(const tensor& from) {
  return {reinterpret_cast<const char*>(from.values.data()), from.values.size() * sizeof(float)};
}

result<tensor> tensor_of(std::string name, std::vector<std::uint64_t> shape, std::string_view bytes,
                         number_format format) {
  const std::size_t step = format.bytes();
  const auto count = element_count(shape);
  if (bytes.size() % step != 0 || count != bytes.size() / step)
    return {errc::malformed, "shape and size of the values differ: tensor " + troupe::quote(name)
                               + ", " + std::to_string(bytes.size()) + " bytes"};
  tensor made{std::move(name), std::move(shape), std::vector<float>(*count)};
  if (format.type != number_format::kind::f32)
    made.converted_from = format.name();
  if (format.type == number_format::kind::f32 && !format.big_endian) {
    if (!bytes.empty())
      std::memcpy(made.values.data(), bytes.data(), bytes.size());
    return made;
  }
  for (std::size_t i = 0; i < made.values.size(); ++i) {
    const auto value = number_at(bytes.data() + i * step, format);
    if (!value)
      return {errc::invalid_argument, "a value is too large for f32: tensor "
                                        + troupe::quote(made.name) + " at "
                                        + position_text(made.shape, i)};
    made.values[i] = *value;
  }
  return made;
}

result<void> check_tensors(std::span<const tensor> tensors) {
  std::set<std::string_view> names;
  for (const tensor& one : tensors) {
    if (!is_name(one.name))
      return {errc::invalid_argument,
              "a tensor's name is not UTF-8 or has a NUL: " + troupe::quote(one.name)};
    if (!names.insert(one.name).second)
      return {errc::invalid_argument, "two tensors have one name: " + troupe::quote(one.name)};
    if (element_count(one.shape) != one.values.size())
      return {errc::invalid_argument, "shape and number of values differ: tensor "
                                        + troupe::quote(one.name) + ", "
                                        + std::to_string(one.values.size()) + " values"};
  }
  return {};
}

} // namespace troupe::storage::detail
