// Names the ways in which gossip peers mix their copies.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>

namespace troupe {

enum class mixing : std::uint8_t {
  each_step, ///< In each step with all neighbours, which wait for each other (D-PSGD).
  pairwise,  ///< After each step with one neighbour, which nobody waits for (AD-PSGD).
};

/// Returns "each_step" or "pairwise".
const char* to_string(mixing which);
/// Errors: invalid_argument.
result<mixing> parse_mixing(const std::string& text);

} // namespace troupe
