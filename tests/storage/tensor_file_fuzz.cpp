// Feeds any bytes to decode_tensors(). Input: a byte that chooses the format, then a file.
#include "storage/tensor_file.hpp"
#include "tests/serialization/fuzz_main.hpp"

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

constexpr std::array names{"t.npy", "t.npz", "t.safetensors"};

std::uint64_t product_of(const std::vector<std::uint64_t>& shape) {
  std::uint64_t product = 1;
  for (const std::uint64_t extent : shape)
    product *= extent;
  return product;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::storage;
  if (size == 0)
    return 0;
  const std::string_view bytes{reinterpret_cast<const char*>(data) + 1, size - 1};
  const auto tensors = decode_tensors(names[data[0] % names.size()], bytes);
  if (!tensors) {
    // The error is one bounded line without control characters.
    const std::string& text = tensors.error().text;
    if (text.empty() || text.size() > 500 || text.find_first_of("\n\r\x1b") != std::string::npos)
      std::abort();
    return 0;
  }
  for (const tensor& one : *tensors) {
    if (product_of(one.shape) != one.values.size() || shape_text(one.shape).empty())
      std::abort();
    if (!one.values.empty() && position_text(one.shape, one.values.size() - 1).empty())
      std::abort();
  }
  return 0;
}

#ifndef TROUPE_FUZZ_REPLAY
  #include "storage/detail/npy.hpp"
  #include "storage/detail/npz.hpp"
  #include "storage/detail/safetensors.hpp"

namespace {

using namespace troupe;

storage::tensor random_tensor(test::random_source& random, std::size_t index) {
  storage::tensor made{"w" + std::to_string(index), {}, {}};
  for (auto rank = random.below(4); rank > 0; --rank)
    made.shape.push_back(random.below(4));
  made.values.resize(product_of(made.shape));
  for (float& value : made.values)
    value = random.real();
  return made;
}

/// Returns a file of one to three tensors as this library writes it.
std::string random_file(test::random_source& random, std::size_t format) {
  std::vector<storage::tensor> tensors(1 + random.below(3));
  for (std::size_t i = 0; i < tensors.size(); ++i)
    tensors[i] = random_tensor(random, i);
  if (format == 0)
    return storage::detail::npy_head(tensors[0].shape)
           + std::string{storage::detail::bytes_of_values(tensors[0])};
  const auto file = format == 1 ? storage::detail::encode_npz(tensors)
                                : storage::detail::encode_safetensors(tensors);
  if (!file)
    std::abort();
  return *file;
}

} // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return troupe::test::mutate_or_make(data, size, max_size, seed, [](auto& random) {
    const auto format = random.below(names.size());
    const std::string file = static_cast<char>(format) + random_file(random, format);
    const auto* begin = reinterpret_cast<const std::byte*>(file.data());
    return std::vector<std::byte>{begin, begin + file.size()};
  });
}
#endif
