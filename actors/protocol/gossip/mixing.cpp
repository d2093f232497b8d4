#include "actors/protocol/gossip/mixing.hpp"

#include "base/quote.hpp"

namespace troupe {

const char* to_string(mixing which) {
  switch (which) {
  case mixing::each_step: return "each_step";
  case mixing::pairwise: return "pairwise";
  }
  return "unknown";
}

result<mixing> parse_mixing(const std::string& text) {
  for (const auto which : {mixing::each_step, mixing::pairwise})
    if (text == to_string(which))
      return which;
  return {errc::invalid_argument, quote(text) + " is no way of mixing: use each_step or pairwise"};
}

} // namespace troupe
