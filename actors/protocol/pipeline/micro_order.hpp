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

/// A part that waits for a slow link is idle. With `ahead`, a part keeps more micro-batches, and
/// computes them while the link carries others. With 2, the parts and both directions of a link
/// work at the same time, even if a link needs as long as a part. 1 is the eager 1F1B of Zhuang et
/// al. 2023, "On Optimizing the Communication of Model Parallelism".
struct micro_schedule {
  micro_order order = micro_order::one_f_one_b;
  std::uint32_t ahead = 2; ///< 1f1b: micro-batches more for each link below a part. 0: none.

  /// Returns how many inputs a part keeps at most, from the begin of their forward to the end of
  /// their backward. Requires: part < parts.
  std::uint32_t kept_max(std::uint32_t part, std::uint32_t parts, std::uint32_t micros) const;
  /// Returns how many inputs a part holds at most: those that it keeps, and those that wait for
  /// their forward. The part above sends no more than it keeps itself. Requires: part < parts.
  std::uint32_t held_max(std::uint32_t part, std::uint32_t parts, std::uint32_t micros) const;
};

} // namespace troupe
