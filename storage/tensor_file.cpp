#include "storage/tensor_file.hpp"

#include "base/quote.hpp"
#include "base/system/file.hpp"
#include "base/system/output_file.hpp"
#include "storage/detail/npy.hpp"
#include "storage/detail/npz.hpp"
#include "storage/detail/safetensors.hpp"
#include "storage/detail/tensor_bytes.hpp"
#include "storage/file_content.hpp"
#include "storage/regular_file.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

namespace troupe::storage {

namespace fs = std::filesystem;

namespace {

bool is_known(const fs::path& extension) {
  return extension == ".npy" || extension == ".npz" || extension == ".safetensors";
}

failure unknown_extension(const fs::path& file) {
  return {errc::invalid_argument,
          "not a tensor file, wanted .npy, .npz or .safetensors: " + file.string()};
}

failure in_file(failure why, const fs::path& file) {
  why.text += ", in " + file.string();
  return why;
}

result<std::string> encode_npy(const std::vector<tensor>& tensors) {
  if (tensors.size() != 1)
    return {errc::invalid_argument, "a .npy holds one tensor, use .npz or .safetensors for "
                                      + std::to_string(tensors.size())};
  std::string bytes = detail::npy_head(tensors[0].shape);
  return bytes += detail::bytes_of_values(tensors[0]);
}

/// Names the content of a file that is not of its extension's format; nullopt if that is unknown.
std::optional<std::string> other_content(const fs::path& extension, std::string_view bytes) {
  if (bytes.empty())
    return "empty";
  const auto found = content_of(bytes.substr(0, file_head_bytes));
  if (!found)
    return std::nullopt;
  const bool is_right = extension == ".npz"
                          ? found->format == file_format::npz || found->format == file_format::zip
                        : extension == ".npy" ? found->format == file_format::npy
                                              : found->format == file_format::safetensors;
  return is_right ? std::nullopt : std::optional{found->text()};
}

result<tensor> decode_npy(std::string name, std::string_view bytes) {
  auto parts = detail::parse_npy(bytes);
  if (!parts)
    return parts.error();
  return detail::tensor_of(std::move(name), std::move(parts->shape), parts->values, parts->format);
}

} // namespace

result<void> check_extension(const fs::path& file) {
  if (!is_known(file.extension()))
    return unknown_extension(file);
  return {};
}

result<void> write_tensors(const fs::path& file, const std::vector<tensor>& tensors) {
  const auto extension = file.extension();
  if (!is_known(extension))
    return unknown_extension(file);
  if (const auto sound = detail::check_tensors(tensors); !sound)
    return in_file(sound.error(), file);
  auto bytes = extension == ".npy"   ? encode_npy(tensors)
               : extension == ".npz" ? detail::encode_npz(tensors)
                                     : detail::encode_safetensors(tensors);
  if (!bytes)
    return in_file(bytes.error(), file);
  return write_outputs({{file, *std::move(bytes)}});
}

result<std::vector<tensor>> read_tensors(const fs::path& file, const tensor_filter& wants) {
  if (auto known = check_extension(file); !known)
    return known.error();
  if (const auto other = other_than_file(file))
    return {errc::io_failed, "cannot read " + file.string() + ": it is " + *other};
  const auto bytes = read_file(file, std::numeric_limits<std::size_t>::max());
  if (!bytes)
    return bytes.error();
  return decode_tensors(file, *bytes, wants);
}

result<std::vector<tensor>> decode_tensors(const fs::path& file, std::string_view bytes,
                                           const tensor_filter& wants) {
  const auto extension = file.extension();
  if (!is_known(extension))
    return unknown_extension(file);
  auto tensors = [&]() -> result<std::vector<tensor>> {
    if (extension == ".npz")
      return detail::decode_npz(bytes, wants);
    if (extension == ".safetensors")
      return detail::decode_safetensors(bytes, wants);
    auto one = decode_npy(file.stem().string(), bytes);
    if (!one)
      return one.error();
    return std::vector<tensor>{std::move(*one)};
  }();
  // A sound file may begin like one of another format, so this comes after the attempt.
  const bool is_doubtful = tensors ? tensors->empty() : tensors.error().code == errc::malformed;
  if (is_doubtful)
    if (const auto content = other_content(extension, bytes))
      return {errc::malformed, file.string() + " is " + *content};
  if (!tensors)
    return in_file(tensors.error(), file);
  for (tensor& one : *tensors) {
    if (one.unread)
      one.unread = in_file(*std::move(one.unread), file);
    if (wants && !wants(one.name, one.shape))
      one.values = {};
  }
  return tensors;
}

std::string shape_text(std::span<const std::uint64_t> shape) {
  constexpr std::size_t listed_max = 16; // A foreign file may have any number of dimensions.
  std::string text;
  for (std::size_t i = 0; i < std::min(shape.size(), listed_max); ++i)
    text += (i > 0 ? "x" : "") + std::to_string(shape[i]);
  return text.empty() ? "a scalar" : text + (shape.size() > listed_max ? "x..." : "");
}

std::string position_text(std::span<const std::uint64_t> shape, std::uint64_t index) {
  std::string text;
  for (std::size_t i = shape.size(); i-- > 0; index /= shape[i])
    text = std::to_string(index % shape[i]) + (text.empty() ? "" : ", ") + text;
  return "[" + text + "]";
}

} // namespace troupe::storage
