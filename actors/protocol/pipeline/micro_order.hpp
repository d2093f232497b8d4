// Names the orders in which a part of a pipeline computes its micro-batches.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>

namespace troupe {

enum class micro_order : std::uint8_t {
  fill_drain, ///< All forward, then all backward (GPipe).
  one_f_one_b ///< Backward if it can, else forward (PipeDream-flush).
};

/// Returns "fill-drain" or "1f1b".
const char* to_string(micro_order which);
/// Errors: invalid_argument.
result<micro_order> parse_micro_order(const std::string& text);

} // namespace troupe
