#include "storage/detail/safetensors.hpp"

#include "base/bytes.hpp"
#include "base/quote.hpp"
#include "storage/detail/safetensors_header.hpp"
#include "storage/detail/tensor_bytes.hpp"

#include "nlohmann/json.hpp"

#include <algorithm>
#include <tuple>

namespace troupe::storage::detail {

namespace {

using nlohmann::ordered_json;

constexpr std::size_t header_alignment = 8;
/// The reference implementation refuses longer headers too.
constexpr std::uint64_t header_bytes_max = 100'000'000;

result<tensor> decode_entry(safetensors_entry& from, std::string_view values,
                            const tensor_filter& wants) {
  if (!from.type)
    return {errc::invalid_argument, "dtype is " + troupe::quote(from.dtype)
                                      + ", not F16, BF16, F32 or F64: tensor "
                                      + troupe::quote(from.name)};
  if (wants && !wants(from.name, from.shape))
    return tensor{std::move(from.name), std::move(from.shape), {}};
  return tensor_of(from.name, from.shape, values, {*from.type});
}

} // namespace

result<std::string> encode_safetensors(std::span<const tensor> tensors) {
  ordered_json header = ordered_json::object();
  std::uint64_t end = 0;
  for (const tensor& one : tensors) {
    if (one.name == safetensors_metadata_key)
      return {errc::invalid_argument, "a tensor of a .safetensors cannot be named __metadata__"};
    const std::uint64_t begin = end;
    end += bytes_of_values(one).size();
    header.push_back(
      {one.name, {{"dtype", "F32"}, {"shape", one.shape}, {"data_offsets", {begin, end}}}});
  }
  std::string text = header.dump();
  text.resize((text.size() + header_alignment - 1) / header_alignment * header_alignment, ' ');
  if (text.size() > header_bytes_max)
    return {errc::invalid_argument, "too many tensors for one .safetensors"};
  std::string bytes = byte_writer{}.little(std::uint64_t{text.size()}).take();
  bytes.reserve(bytes.size() + text.size() + end);
  bytes += text;
  for (const tensor& one : tensors)
    bytes += bytes_of_values(one);
  return bytes;
}

result<std::vector<tensor>> decode_safetensors(std::string_view bytes, const tensor_filter& wants) {
  byte_reader reader(bytes);
  const auto length = reader.little<std::uint64_t>();
  if (bytes.size() < sizeof length || length > reader.left() || length > header_bytes_max)
    return {errc::malformed, "the .safetensors header ends early"};
  auto parsed = parse_safetensors_header(bytes.substr(sizeof length, length));
  if (!parsed)
    return parsed.error();
  auto& entries = *parsed;
  std::ranges::stable_sort(entries, {}, [](const auto& e) { return std::tuple{e.begin, e.end}; });
  const std::string_view values = bytes.substr(sizeof length + length);
  std::vector<tensor> tensors;
  std::uint64_t filled = 0;
  for (safetensors_entry& e : entries) {
    if (e.begin != filled)
      return {errc::malformed,
              "values of a .safetensors overlap or have a gap: " + troupe::quote(e.name)};
    if (e.end > values.size())
      return {errc::malformed, "the file ends " + std::to_string(e.end - values.size())
                                 + " bytes before the end of tensor " + troupe::quote(e.name)};
    filled = e.end;
    auto made = decode_entry(e, values.substr(e.begin, e.end - e.begin), wants);
    if (!made && !wants)
      return made.error();
    if (!made)
      made = tensor{std::move(e.name), std::move(e.shape), {}, {}, made.error()};
    tensors.push_back(*std::move(made));
  }
  if (filled != values.size())
    return {errc::malformed, "a .safetensors has bytes that belong to no tensor"};
  return tensors;
}

} // namespace troupe::storage::detail
