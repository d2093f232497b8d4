#include "storage/detail/tensor_bytes.hpp"

#include <bit>
#include <cstring>
#include <set>

namespace troupe::storage::detail {

// Values are stored as they lie in memory.
static_assert(std::endian::native == std::endian::little && sizeof(float) == 4);

namespace {

/// Well-formed as RFC 3629 has it, and without the NUL at which some readers end a name.
bool is_name(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned lead = byte(i);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (lead == 0 || (lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || text.size() - i < length)
      return false;
    for (std::size_t j = 1; j < length; ++j)
      if ((byte(i + j) & 0xc0) != 0x80)
        return false;
    // Overlong forms, surrogates, and what lies above U+10FFFF.
    const unsigned second = length > 1 ? byte(i + 1) : 0;
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f)
        || (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f))
      return false;
    i += length;
  }
  return true;
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

result<tensor> tensor_of(std::string name, std::vector<std::uint64_t> shape,
                         std::string_view bytes) {
  const auto count = element_count(shape);
  if (bytes.size() % sizeof(float) != 0 || count != bytes.size() / sizeof(float))
    return {errc::malformed, "shape and size of the values differ: tensor " + name + ", "
                               + std::to_string(bytes.size()) + " bytes"};
  tensor made{std::move(name), std::move(shape), std::vector<float>(*count)};
  if (!bytes.empty())
    std::memcpy(made.values.data(), bytes.data(), bytes.size());
  return made;
}

result<void> check_tensors(std::span<const tensor> tensors) {
  std::set<std::string_view> names;
  for (const tensor& one : tensors) {
    if (!is_name(one.name))
      return {errc::invalid_argument, "a tensor's name is not UTF-8 or has a NUL: " + one.name};
    if (!names.insert(one.name).second)
      return {errc::invalid_argument, "two tensors have one name: " + one.name};
    if (element_count(one.shape) != one.values.size())
      return {errc::invalid_argument, "shape and number of values differ: tensor " + one.name + ", "
                                        + std::to_string(one.values.size()) + " values"};
  }
  return {};
}

} // namespace troupe::storage::detail
