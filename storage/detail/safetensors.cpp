#include "storage/detail/safetensors.hpp"

#include "storage/detail/bytes.hpp"
#include "storage/detail/tensor_bytes.hpp"

#include "nlohmann/json.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

namespace troupe::storage::detail {

namespace {

using nlohmann::ordered_json;

constexpr const char* metadata_key = "__metadata__";
constexpr std::size_t header_alignment = 8;
/// The reference implementation refuses longer headers too.
constexpr std::uint64_t header_bytes_max = 100'000'000;

struct entry {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin, end;
};

failure bad_entry(const std::string& name) {
  return {errc::malformed, "the .safetensors header describes a tensor badly: " + name};
}

/// An object none of whose keys is there twice.
std::optional<ordered_json> parse_json_header(std::string_view text) {
  std::set<std::string> names;
  bool twice = false;
  const auto watch = [&](int depth, ordered_json::parse_event_t event, ordered_json& value) {
    if (event == ordered_json::parse_event_t::key && depth == 1)
      twice = !names.insert(value.get<std::string>()).second || twice;
    return true;
  };
  auto header = ordered_json::parse(text, watch, false);
  if (twice || !header.is_object())
    return std::nullopt;
  return header;
}

std::optional<std::vector<std::uint64_t>> numbers_at(const ordered_json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array())
    return std::nullopt;
  std::vector<std::uint64_t> numbers;
  for (const ordered_json& number : *found) {
    if (!number.is_number_unsigned())
      return std::nullopt;
    numbers.push_back(number.get<std::uint64_t>());
  }
  return numbers;
}

result<entry> entry_of(const std::string& name, const ordered_json& described) {
  if (!described.is_object())
    return bad_entry(name);
  const auto dtype = described.find("dtype");
  if (dtype == described.end() || !dtype->is_string())
    return bad_entry(name);
  if (*dtype != "F32")
    return {errc::invalid_argument,
            "dtype is not F32: tensor " + name + ", " + dtype->get<std::string>()};
  auto shape = numbers_at(described, "shape");
  const auto place = numbers_at(described, "data_offsets");
  if (!shape || !place || place->size() != 2 || (*place)[0] > (*place)[1])
    return bad_entry(name);
  return entry{name, std::move(*shape), (*place)[0], (*place)[1]};
}

} // namespace

result<std::string> encode_safetensors(std::span<const tensor> tensors) {
  ordered_json header = ordered_json::object();
  std::uint64_t end = 0;
  for (const tensor& one : tensors) {
    if (one.name == metadata_key)
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

result<std::vector<tensor>> decode_safetensors(std::string_view bytes) {
  byte_reader reader(bytes);
  const auto length = reader.little<std::uint64_t>();
  if (bytes.size() < sizeof length || length > reader.left() || length > header_bytes_max)
    return {errc::malformed, "the .safetensors header ends early"};
  const auto header = parse_json_header(bytes.substr(sizeof length, length));
  if (!header)
    return {errc::malformed, "the .safetensors header is not a JSON object of different names"};
  std::vector<entry> entries;
  for (const auto& [name, described] : header->items()) {
    if (name == metadata_key)
      continue;
    auto found = entry_of(name, described);
    if (!found)
      return found.error();
    entries.push_back(std::move(*found));
  }
  std::ranges::stable_sort(entries, {}, [](const entry& e) { return std::tuple{e.begin, e.end}; });
  const std::string_view values = bytes.substr(sizeof length + length);
  std::vector<tensor> tensors;
  std::uint64_t filled = 0;
  for (entry& e : entries) {
    if (e.begin != filled || e.end > values.size())
      return {errc::malformed,
              "values of a .safetensors overlap, have a gap or are cut off: " + e.name};
    filled = e.end;
    auto made =
      tensor_of(std::move(e.name), std::move(e.shape), values.substr(e.begin, e.end - e.begin));
    if (!made)
      return made.error();
    tensors.push_back(std::move(*made));
  }
  if (filled != values.size())
    return {errc::malformed, "a .safetensors has bytes that belong to no tensor"};
  return tensors;
}

} // namespace troupe::storage::detail
