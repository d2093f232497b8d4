// Proof that a schedule does what its goal says, for any numbers: it is carried out on symbols. A
// chunk of a place is the set of devices whose numbers are in it.
//
// Checked:
//   1. every step names places and chunks that exist, and two places;
//   2. nothing is read, or added to, before it is written;
//   3. no contribution is added twice: what is added has no device in common with what is there;
//   4. no chunk crosses a link twice in the same direction with the same contents;
//   5. in the end every device has what the goal promises, each contribution exactly once.
// A partial sum and the whole sum are different contents: a ring sends both over its links.
//
// Cost: steps * (devices / 64 + log steps) and as much memory.
#pragma once

#include "kernels/schedules/schedule.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace troupe::kernels {

/// The first fault, in one line ("step 7 ..."); none for a correct schedule. A link is here what
/// connects two places, as if each pair had its own.
std::optional<std::string> fault_of(const schedule& plan);

/// The numbers of the directed links on the way between two places, and their names.
struct link_view {
  std::function<std::span<const std::uint32_t>(std::uint32_t from, std::uint32_t to)> path;
  std::function<std::string(std::uint32_t link)> name;
};

/// The same on given links, each of the path counts: stricter, as what one device sends to two
/// others crosses its own link twice. Rings keep to it where their neighbours are close to each
/// other; strategies that send directly to many devices do only where each pair has its own link.
std::optional<std::string> fault_of(const schedule& plan, const link_view& links);

} // namespace troupe::kernels
