// Proves that a schedule reaches its goal for any numbers, by carrying it out on symbols. A chunk
// of a place is the set of devices whose numbers are in it.
//
// Checked:
//   1. every step names existing places and an existing chunk, and two different places;
//   2. no chunk is read, or added to, before it is written;
//   3. no contribution is added twice: source and target of an addition have no device in common;
//   4. no chunk crosses a link twice in the same direction with the same contents;
//   5. in the end every device has the goal's result, each contribution exactly once.
// A partial sum and the whole sum are different contents: a ring sends both over its links.
//
// Cost: steps * (devices / 64 + log steps) in time and in memory.
#pragma once

#include "kernels/schedules/schedule.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace troupe::kernels {

/// Returns the first fault in one line ("step 7 ..."); nullopt for a correct schedule. Each pair of
/// places counts as having its own link.
std::optional<std::string> fault_of(const schedule& plan);

/// The numbers of the directed links on the way between two places, and their names.
struct link_view {
  std::function<std::span<const std::uint32_t>(std::uint32_t from, std::uint32_t to)> path;
  std::function<std::string(std::uint32_t link)> name;
};

/// Applies check 4 to each link of a path. This is stricter: data that one device sends to two
/// others crosses its own link twice. Rings pass if their neighbours are close to each other.
/// Strategies that send directly to many devices pass only if each pair has its own link.
std::optional<std::string> fault_of(const schedule& plan, const link_view& links);

} // namespace troupe::kernels
