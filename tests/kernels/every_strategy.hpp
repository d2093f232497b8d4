// Makes schedules of every strategy, for tests that hold for all of them.
#pragma once

#include "kernels/schedules/strategies.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace troupe::kernels {

struct named_schedule {
  std::string name;
  schedule plan;
};

inline std::vector<std::vector<std::uint32_t>> groups_of(std::uint32_t devices,
                                                         std::uint32_t size) {
  std::vector<std::vector<std::uint32_t>> groups;
  for (std::uint32_t device = 0; device < devices; ++device) {
    if (device % size == 0)
      groups.emplace_back();
    groups.back().push_back(device);
  }
  return groups;
}

/// Returns two rings in different orders, with two thirds and one third of the buffer.
inline std::vector<ring_path> uneven_rings(std::uint32_t devices) {
  auto shuffled = ring_in_order(devices);
  std::shuffle(shuffled.order.begin(), shuffled.order.end(), std::mt19937{devices});
  auto first = ring_in_order(devices);
  first.share = 2;
  return {first, shuffled};
}

inline std::vector<ring_path> both_ways(std::uint32_t devices) {
  return {ring_in_order(devices), reversed(ring_in_order(devices))};
}

/// Returns a schedule of every strategy.
inline std::vector<named_schedule> all_of(std::uint32_t devices, std::uint32_t pieces) {
  const std::array ring{ring_in_order(devices)};
  std::vector<named_schedule> all{
    {"central", central(devices, devices / 2, pieces)},
    {"host", through_host(devices, pieces)},
    {"block", block(devices, pieces)},
    {"ring", rings(ring, pieces)},
    {"both ways", rings(both_ways(devices), pieces)},
    {"two rings", rings(uneven_rings(devices), pieces)},
    {"double tree", double_tree(devices, pieces)},
    {"broadcast", broadcast(devices, devices / 2, pieces)},
  };
  for (const auto goal : {collective::reduce_scatter, collective::all_gather}) {
    all.push_back({"a part of block", block(devices, pieces, goal)});
    all.push_back({"a part of two rings", rings(uneven_rings(devices), pieces, goal)});
  }
  for (const std::uint32_t size : {2u, 3u, 8u}) {
    const auto groups = groups_of(devices, size);
    const std::array across{ring_in_order(static_cast<std::uint32_t>(groups.size()))};
    all.push_back({"leaders", hierarchical_by_leaders(groups, rings(across, pieces))});
    if (devices % size == 0)
      all.push_back({"hierarchical",
                     hierarchical(groups, block(size, 1, collective::reduce_scatter),
                                  rings(across, pieces), block(size, 1, collective::all_gather))});
  }
  return all;
}

} // namespace troupe::kernels
