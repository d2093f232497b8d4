#include "serialization/encoding.hpp"

#include "base/quote.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <utility>

namespace troupe {

namespace {

constexpr std::array all{encoding::fp16,   encoding::bf16, encoding::int8,
                         encoding::onebit, encoding::topk, encoding::randomk};

bool has_fraction(encoding x) { return x == encoding::topk || x == encoding::randomk; }

} // namespace

const char* to_string(encoding x) {
  switch (x) {
  case encoding::f32: return "f32";
  case encoding::fp16: return "fp16";
  case encoding::bf16: return "bf16";
  case encoding::int8: return "int8";
  case encoding::onebit: return "onebit";
  case encoding::topk: return "topk";
  case encoding::randomk: return "randomk";
  }
  return "unknown";
}

std::string names_of(encoding_set what) {
  std::string names;
  for (const encoding x : all)
    if ((what & only(x)) != 0)
      names += (names.empty() ? "" : ", ") + std::string{to_string(x)};
  return names;
}

std::string to_string(const compression& x) {
  if (!has_fraction(x.how))
    return to_string(x.how);
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, x.fraction).ptr;
  return std::string{to_string(x.how)} + ":" + std::string{text, end};
}

result<compression> parse_compression(const std::string& text) {
  const auto colon = text.find(':');
  const auto name = text.substr(0, colon);
  if (text == to_string(encoding::f32))
    return compression{};
  for (const encoding how : all) {
    if (name != to_string(how))
      continue;
    if (!has_fraction(how) && colon == std::string::npos)
      return compression{how, 0};
    if (!has_fraction(how))
      return {errc::invalid_argument, quote(text) + ": " + name + " takes no number"};
    const auto number = colon == std::string::npos ? std::string{} : text.substr(colon + 1);
    double fraction = 0;
    const auto [end, problem] =
      std::from_chars(number.data(), number.data() + number.size(), fraction);
    if (problem == std::errc{} && end == number.data() + number.size() && fraction > 0
        && fraction <= 1)
      return compression{how, fraction};
    return {errc::invalid_argument, quote(text) + ": " + name
                                      + " needs the fraction of elements to send, above 0 and at "
                                        "most 1, such as "
                                      + name + ":0.01"};
  }
  return {errc::invalid_argument,
          quote(text)
            + " is none of f32, fp16, bf16, int8, onebit, topk:FRACTION and "
              "randomk:FRACTION"};
}

result<encoding> parse_pull_encoding(const std::string& text) {
  for (const encoding how : {encoding::fp16, encoding::bf16, encoding::int8})
    if (text == to_string(how))
      return how;
  return {errc::invalid_argument, quote(text)
                                    + " is none of fp16, bf16 and int8: of values that "
                                      "are pulled, the rest cannot be sent later"};
}

} // namespace troupe
