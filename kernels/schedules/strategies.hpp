// Generates schedules, one function for each strategy. Below, B is the size of a buffer and n the
// number of devices. Bytes are those that a device sends, and receives, in an all-reduce.
//
//   central       through one device                      root (n - 1) B, others B
//   host          through a staging place                 staging place n B, others B
//   block         each device adds up its own block       2 (n - 1) / n B, directly to all others
//   rings         blocks travel round one or more rings   2 (n - 1) / n B, to one neighbour a ring
//   double_tree   halves go up and down two binary trees  at most 2 B
//   hierarchical  inside groups, between them, inside     the sum of its parts
//
// A broadcast sends B once, from one device to the next.
//
// `pieces` (>= 1) cuts each unit that a strategy moves into `pieces` chunks. They follow each other
// through the steps (pipelining), and each pays the latency of all its steps.
#pragma once

#include "kernels/schedules/schedule.hpp"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace troupe::kernels {

/// All devices reduce into `root`, which copies the sum back.
schedule central(std::uint32_t devices, std::uint32_t root, std::uint32_t pieces);

/// Reduces through one staging place (memory of a host), which adds no numbers of its own.
schedule through_host(std::uint32_t devices, std::uint32_t pieces);

/// Every device sends block i to device i, then the sum of its own block to all others.
schedule block(std::uint32_t devices, std::uint32_t pieces,
               collective goal = collective::all_reduce);

/// Sends the root's buffer down a chain: root, root + 1, ... Each device passes on one chunk while
/// the next one arrives.
schedule broadcast(std::uint32_t devices, std::uint32_t root, std::uint32_t pieces);

struct ring_path {
  std::vector<std::uint32_t> order; ///< Every device once; the last one sends to the first.
  std::uint32_t share = 1;          ///< Share of the chunks, in proportion to the other rings. >=
                                    ///< 1.

  bool operator==(const ring_path&) const = default;
};

/// Returns devices 0, 1, 2, ... as a ring.
ring_path ring_in_order(std::uint32_t devices);
/// Returns the ring in the opposite direction.
ring_path reversed(ring_path ring);

/// Ring all-reduce (Patarasuk, Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of
/// workstations") over one or more rings of the same devices at the same time. A ring and its
/// reverse use links in both directions; edge-disjoint rings (ring_search.hpp) use all links at
/// once. Requires: at least one path, each a permutation of 0 .. n - 1.
schedule rings(std::span<const ring_path> paths, std::uint32_t pieces,
               collective goal = collective::all_reduce);

/// A binary tree over devices: parents[d], or d itself for the root.
using tree_parents = std::vector<std::uint32_t>;

/// Returns two binary trees over all devices, such that no device is an inner node of both
/// (Sanders, Speck, Träff 2009, "Two-tree algorithms for full bandwidth broadcast, reduction and
/// scan", section 3). The first has the numbers in order; the second is its mirror image, or
/// shifted by one for odd n.
std::pair<tree_parents, tree_parents> two_trees(std::uint32_t devices);

/// Reduces each half of the buffer to the root of one of the two trees and broadcasts it from
/// there.
schedule double_tree(std::uint32_t devices, std::uint32_t pieces);

/// For groups of g devices each, for example those of a host: reduce-scatter inside the groups,
/// all-reduce of each owner's chunks with its counterparts in the other groups, all-gather inside.
/// Requires: groups of one size g that hold every device once; `scatter` and `gather` are of g
/// devices and have equal numbers of chunks; `across` has one device for each group; no staging.
schedule hierarchical(std::span<const std::vector<std::uint32_t>> groups, const schedule& scatter,
                      const schedule& across, const schedule& gather);

/// For groups of any sizes: reduces into the first device of each group, all-reduces over those,
/// and copies back. Requires: groups that hold every device once; `across` has one device for each
/// group.
schedule hierarchical_by_leaders(std::span<const std::vector<std::uint32_t>> groups,
                                 const schedule& across);

} // namespace troupe::kernels
