// Generators of schedules, one for each strategy. B below is the size of a buffer, n the number of
// devices; bytes are those that a device sends, and receives, in an all-reduce.
//
//   central       through one device                      root (n - 1) B, others B
//   host          through a staging place                 staging place n B, others B
//   block         each device adds up a block of its own  2 (n - 1) / n B, directly to all others
//   rings         blocks travel round one ring or more    2 (n - 1) / n B, to one neighbour a ring
//   double_tree   halves go up and down two binary trees  2 B at most
//   hierarchical  inside groups, between them, inside     of its parts
//
// And broadcast: B once, from one device to the next.
//
// `pieces` (>= 1) cuts what a strategy would move at once into so many chunks: they follow each
// other through the steps (pipelining), and each pays the latency of every step it takes.
#pragma once

#include "kernels/schedules/schedule.hpp"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace troupe::kernels {

/// All devices reduce into `root`, which copies the sum back.
schedule central(std::uint32_t devices, std::uint32_t root, std::uint32_t pieces);

/// The same through one staging place (memory of a host), which has nothing to add.
schedule through_host(std::uint32_t devices, std::uint32_t pieces);

/// Every device sends block i to device i, then the sum of its own block to everyone.
schedule block(std::uint32_t devices, std::uint32_t pieces,
               collective goal = collective::all_reduce);

/// Everyone gets what `root` has, from the device before it: root, root + 1, ... in a chain, in
/// which each passes on one chunk while the next one comes.
schedule broadcast(std::uint32_t devices, std::uint32_t root, std::uint32_t pieces);

struct ring_path {
  std::vector<std::uint32_t> order; ///< Every device once; the last one sends to the first.
  std::uint32_t share = 1;          ///< Of the chunks, in proportion to the other rings. >= 1.

  bool operator==(const ring_path&) const = default;
};

/// Devices 0, 1, 2, ... in a ring.
ring_path ring_in_order(std::uint32_t devices);
/// The ring walked the other way round.
ring_path reversed(ring_path ring);

/// Ring all-reduce (Patarasuk, Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of
/// workstations") over one or more rings of the same devices at the same time: with a ring and its
/// reverse, links work in both directions; with edge-disjoint rings (ring_search.hpp), all at once.
/// Requires: at least one path, each a permutation of 0 .. n - 1.
schedule rings(std::span<const ring_path> paths, std::uint32_t pieces,
               collective goal = collective::all_reduce);

/// Of a binary tree over devices: parents[d], or d itself for the root.
using tree_parents = std::vector<std::uint32_t>;

/// Two binary trees over all devices, such that none is an inner node of both (Sanders, Speck,
/// Träff 2009, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", section 3):
/// numbers in order in the first; the second is its mirror image, or shifted by one for odd n.
std::pair<tree_parents, tree_parents> two_trees(std::uint32_t devices);

/// Each half of the buffer is reduced to the root of one of the two trees and broadcast from it.
schedule double_tree(std::uint32_t devices, std::uint32_t pieces);

/// For groups of g devices each (a group: those of a host): reduce-scatter inside the groups,
/// all-reduce of each owner's chunks with its like in the other groups, all-gather inside.
/// Requires: groups of one size g that hold every device once; `scatter` and `gather` are of g
/// devices and have as many chunks, `across` is of as many devices as there are groups; no staging.
schedule hierarchical(std::span<const std::vector<std::uint32_t>> groups, const schedule& scatter,
                      const schedule& across, const schedule& gather);

/// For groups of any sizes: into the first device of each group, an all-reduce of those, and back.
/// Requires: groups that hold every device once; `across` as above.
schedule hierarchical_by_leaders(std::span<const std::vector<std::uint32_t>> groups,
                                 const schedule& across);

} // namespace troupe::kernels
