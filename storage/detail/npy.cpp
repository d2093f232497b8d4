#include "storage/detail/npy.hpp"

#include "base/bytes.hpp"
#include "base/quote.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace troupe::storage::detail {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view npy_magic = "\x93NUMPY"sv;
constexpr std::size_t value_alignment = 64;

/// Reads the few kinds of Python literals of which a header consists.
class literals {
public:
  explicit literals(std::string_view text) : left_(text) {}

  /// Skips blanks, then `wanted` if it is next.
  bool take(std::string_view wanted) {
    left_.remove_prefix(std::min(left_.find_first_not_of(" \t\r\n"), left_.size()));
    if (!left_.starts_with(wanted))
      return false;
    left_.remove_prefix(wanted.size());
    return true;
  }
  bool at_end() { return take("") && left_.empty(); }

  /// Reads a string without escapes, which no key and no plain dtype needs.
  std::optional<std::string_view> string() {
    const std::string_view quote = take("'") ? "'" : take("\"") ? "\"" : "";
    const auto end = quote.empty() ? std::string_view::npos : left_.find(quote);
    if (end == std::string_view::npos)
      return std::nullopt;
    const auto text = left_.substr(0, end);
    left_.remove_prefix(end + 1);
    return text;
  }

  std::optional<bool> boolean() {
    if (take("True"))
      return true;
    return take("False") ? std::optional{false} : std::nullopt;
  }

  std::optional<std::vector<std::uint64_t>> tuple() {
    std::vector<std::uint64_t> numbers;
    if (!take("("))
      return std::nullopt;
    while (!take(")")) {
      std::uint64_t number = 0;
      const char* const end = left_.data() + left_.size();
      const auto [rest, error] = std::from_chars(left_.data(), end, number);
      if (error != std::errc{})
        return std::nullopt;
      numbers.push_back(number);
      left_.remove_prefix(static_cast<std::size_t>(rest - left_.data()));
      if (left_.starts_with('L')) // Python 2 writes long integers with an L.
        left_.remove_prefix(1);
      if (!take(",") && !left_.starts_with(")"))
        return std::nullopt;
    }
    return numbers;
  }

private:
  std::string_view left_;
};

struct npy_header {
  std::optional<std::string_view> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::uint64_t>> shape;
};

std::optional<npy_header> parse_npy_header(std::string_view text) {
  literals in(text);
  npy_header found;
  if (!in.take("{"))
    return std::nullopt;
  while (!in.take("}")) {
    const auto key = in.string();
    if (!key || !in.take(":"))
      return std::nullopt;
    bool known = false;
    if (*key == "descr" && !found.descr) {
      if (in.take("["))
        return npy_header{"a structure", false, {{}}}; // Its fields are ignored.
      known = (found.descr = in.string()).has_value();
    } else if (*key == "fortran_order" && !found.fortran_order) {
      known = (found.fortran_order = in.boolean()).has_value();
    } else if (*key == "shape" && !found.shape) {
      known = (found.shape = in.tuple()).has_value();
    }
    if (!known)
      return std::nullopt;
    if (!in.take(",")) {
      if (!in.take("}"))
        return std::nullopt;
      break;
    }
  }
  if (!in.at_end() || !found.descr || !found.fortran_order || !found.shape)
    return std::nullopt;
  return found;
}

std::optional<number_format> format_of(std::string_view descr) {
  using kind = number_format::kind;
  constexpr std::array known{std::pair{"f4"sv, kind::f32}, std::pair{"f8"sv, kind::f64},
                             std::pair{"f2"sv, kind::f16}};
  // Without a byte order, or with '=', the machine's byte order applies.
  const char order = descr.empty() ? ' ' : descr[0];
  const bool has_order = order == '<' || order == '>' || order == '=';
  for (const auto& [name, type] : known)
    if (descr.substr(has_order ? 1 : 0) == name)
      return number_format{type, order == '>'};
  return std::nullopt;
}

} // namespace

std::string npy_head(std::span<const std::uint64_t> shape) {
  std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  text += shape.size() == 1 ? ",), }" : "), }";
  const auto padded = [&](std::size_t before) {
    const std::size_t bare = before + text.size() + 1;
    const std::size_t blanks = (value_alignment - bare % value_alignment) % value_alignment;
    return text + std::string(blanks, ' ') + '\n';
  };
  const std::string head{npy_magic};
  if (const auto first = padded(npy_magic.size() + 4); first.size() <= 0xffff) {
    const auto length = byte_writer{}.little(static_cast<std::uint16_t>(first.size())).take();
    return head + std::string("\1\0"sv) + length + first;
  }
  const auto second = padded(npy_magic.size() + 6);
  const auto length = byte_writer{}.little(static_cast<std::uint32_t>(second.size())).take();
  return head + std::string("\2\0"sv) + length + second;
}

std::uint64_t npy_head_bytes(std::string_view prefix) {
  byte_reader reader(prefix.substr(std::min(npy_magic.size(), prefix.size())));
  const unsigned major = reader.little<std::uint8_t>();
  reader.little<std::uint8_t>();
  const std::uint64_t length =
    major == 1 ? reader.little<std::uint16_t>() : reader.little<std::uint32_t>();
  return prefix.size() - reader.left() + length;
}

result<npy_parts> parse_npy(std::string_view bytes) {
  if (!bytes.starts_with(npy_magic))
    return {errc::malformed, "does not begin like a .npy"};
  const unsigned major = byte_reader(bytes.substr(npy_magic.size())).little<std::uint8_t>();
  const std::uint64_t head_bytes = npy_head_bytes(bytes);
  const std::size_t length_at = npy_magic.size() + 2, text_at = length_at + (major == 1 ? 2 : 4);
  if (bytes.size() < text_at || head_bytes > bytes.size())
    return {errc::malformed, "the .npy header ends early"};
  if (major < 1 || major > 3)
    return {errc::invalid_argument, "unknown .npy version: " + std::to_string(major)};
  auto found = parse_npy_header(bytes.substr(text_at, head_bytes - text_at));
  if (!found)
    return {errc::malformed, "the .npy header is malformed"};
  const auto format = format_of(*found->descr);
  if (!format)
    return {errc::invalid_argument, "dtype is " + troupe::quote(*found->descr)
                                      + ", which is no f2, f4 or f8: save it as float32"};
  if (*found->fortran_order)
    return {errc::invalid_argument, "values are in Fortran order, save a C-ordered copy"};
  return npy_parts{std::move(*found->shape), *format, bytes.substr(head_bytes)};
}

} // namespace troupe::storage::detail
