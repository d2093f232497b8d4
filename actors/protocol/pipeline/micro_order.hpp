// Says in which order a part of a pipeline computes its micro-batches, and how many it keeps.
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

/// A part that waits for activations or gradients on a slow link is idle. With `ahead`, parts keep
/// more micro-batches, so that others are on the links meanwhile: 2 for each link fill it in both
/// directions, also if it needs as long as a part. 1 is the eager-1F1B of Zhuang et al. 2023, "On
/// Optimizing the Communication of Model Parallelism".
struct micro_schedule {
  micro_order order = micro_order::one_f_one_b;
  std::uint32_t ahead = 2; ///< 1f1b: micro-batches for each link below a part. 0: as PipeDream's.

  /// Returns how many inputs a part keeps at most, from the begin of their forward to the end of
  /// their backward. Requires: part < parts.
  std::uint32_t kept_max(std::uint32_t part, std::uint32_t parts, std::uint32_t micros) const;
};

} // namespace troupe
