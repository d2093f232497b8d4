// Damages committed checkpoints at random and checks the values that are then restored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::bench {

/// The figures of one kind of damage.
struct damage_figures {
  std::string kind;
  std::uint64_t damages = 0;
  std::uint64_t without_effect = 0; ///< All bytes stayed the same; the checkpoint counts as good.
  std::uint64_t noticed = 0;        ///< By the search and by verify().
  std::uint64_t restored = 0;       ///< The newest good one was restored byte for byte.
  /// Results of the reader without a search: either is right, but wrong values are not.
  std::uint64_t refused_by_reader = 0;
  std::uint64_t harmless_to_reader = 0;
};

struct damage_result {
  std::vector<damage_figures> kinds;
  std::uint64_t checkpoints = 0;
  std::uint64_t files = 0;        ///< Of all checkpoints.
  std::uint64_t none_left = 0;    ///< Trials without a good checkpoint.
  std::vector<std::string> wrong; ///< Errors, and how to repeat them.
};

/// Makes `count` damages, in trials. Each trial damages the newest checkpoint, one in three also
/// the one before it, and so on. Trial i is a function of seed + i and of the checkpoints' bytes.
/// Throws std::runtime_error.
damage_result damage_checkpoints(std::uint64_t count, std::uint64_t seed);

} // namespace troupe::bench
