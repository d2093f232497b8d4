// Damages committed checkpoints at random and looks at what is then restored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::bench {

/// Of one kind of damage.
struct damage_figures {
  std::string kind;
  std::uint64_t damages = 0;
  std::uint64_t without_effect = 0; ///< All bytes were the same afterwards; it counts as good.
  std::uint64_t noticed = 0;        ///< By the search and by verify().
  std::uint64_t restored = 0;       ///< Then the newest good one was, byte for byte.
  /// What the reader does where nobody looks first; each of them may be, wrong values may not.
  std::uint64_t refused_by_reader = 0;
  std::uint64_t harmless_to_reader = 0;
};

struct damage_result {
  std::vector<damage_figures> kinds;
  std::uint64_t checkpoints = 0;
  std::uint64_t files = 0;        ///< Of all checkpoints.
  std::uint64_t none_left = 0;    ///< Trials in which no checkpoint was good.
  std::vector<std::string> wrong; ///< What must not be, and how to see it again.
};

/// `count` damages, in trials: each damages the newest checkpoint, one in three also the one before
/// it, and so on. Trial i is a function of seed + i and of the checkpoints' bytes.
/// Throws std::runtime_error.
damage_result damage_checkpoints(std::uint64_t count, std::uint64_t seed);

} // namespace troupe::bench
