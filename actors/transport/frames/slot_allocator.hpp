// Which granules of an arena a slot gets. Knows nothing of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace troupe::detail {

/// A run of the granules [first, end). What was given back last is given out first, because it is
/// still in the cache; where no slot of that very length came back, the smallest run that is long
/// enough is cut.
///
/// Invariants:
/// (1) Each granule is in exactly one of: a slot that was given out, recent_, runs_.
/// (2) Two runs never touch, so what is free is as long as it can be.
class slot_allocator {
public:
  slot_allocator(std::uint32_t first, std::uint32_t end) { runs_.emplace(first, end - first); }

  /// `count` granules, > 0; nothing where no run is so long.
  std::optional<std::uint32_t> take(std::uint32_t count);
  /// Whether take() would find a slot of this very length that was given back.
  bool has_recent(std::uint32_t count) const;
  void give_back(std::uint32_t first, std::uint32_t count);
  /// What came back is from now on a part of the runs, like what was never given out; where all of
  /// it did, the next slot is the first one.
  void merge_recent();

private:
  std::optional<std::uint32_t> cut(std::uint32_t count);
  void merge(std::uint32_t first, std::uint32_t count);

  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> recent_; ///< By length; last first.
  std::map<std::uint32_t, std::uint32_t> runs_;                          ///< Length by first one.
};

} // namespace troupe::detail
