// Chooses the granules of an arena that a slot gets; touches no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace troupe::detail {

/// Allocates runs of the granules [first, end). A slot that was given back last is reused first,
/// because it is still in the cache. If none of exactly the wanted length came back, the smallest
/// sufficient run is cut.
///
/// Invariants:
/// (1) Each granule is in exactly one of: a slot that was given out, recent_, runs_.
/// (2) Two runs never touch, so free runs are as long as they can be.
class slot_allocator {
public:
  slot_allocator(std::uint32_t first, std::uint32_t end) { runs_.emplace(first, end - first); }

  /// Returns the first of `count` > 0 granules; nullopt if no run is long enough.
  std::optional<std::uint32_t> take(std::uint32_t count);
  /// Returns whether take() would find a slot of exactly this length that was given back.
  bool has_recent(std::uint32_t count) const;
  void give_back(std::uint32_t first, std::uint32_t count);
  /// Merges the slots that were given back into the runs. If all came back, the next slot is the
  /// first one.
  void merge_recent();

private:
  std::optional<std::uint32_t> cut(std::uint32_t count);
  void merge(std::uint32_t first, std::uint32_t count);

  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> recent_; ///< By length; LIFO.
  std::map<std::uint32_t, std::uint32_t> runs_; ///< Length by first granule.
};

} // namespace troupe::detail
