#include "actors/protocol/pipeline/micro_order.hpp"

#include "base/quote.hpp"

#include <algorithm>
#include <cassert>

namespace troupe {

const char* to_string(micro_order which) {
  switch (which) {
  case micro_order::fill_drain: return "fill-drain";
  case micro_order::one_f_one_b: return "1f1b";
  }
  return "unknown";
}

result<micro_order> parse_micro_order(const std::string& text) {
  for (const auto which : {micro_order::fill_drain, micro_order::one_f_one_b})
    if (text == to_string(which))
      return which;
  return {errc::invalid_argument,
          quote(text) + " is no order of micro-batches: use fill-drain or 1f1b"};
}

std::uint32_t micro_schedule::kept_max(std::uint32_t part, std::uint32_t parts,
                                       std::uint32_t micros) const {
  assert(part < parts);
  if (order == micro_order::fill_drain)
    return micros;
  const std::uint64_t links_below = parts - part - 1;
  return static_cast<std::uint32_t>(
    std::min<std::uint64_t>(micros, 1 + links_below * (1 + std::uint64_t{ahead})));
}

std::uint32_t micro_schedule::held_max(std::uint32_t part, std::uint32_t parts,
                                       std::uint32_t micros) const {
  return kept_max(part == 0 ? 0 : part - 1, parts, micros);
}

} // namespace troupe
