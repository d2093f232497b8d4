#include "kernels/schedules/strategies.hpp"

#include <bit>
#include <cassert>

namespace troupe::kernels {

namespace {

/// Returns the parent of v in an in-order tree of 1 .. devices. The height of v is the position of
/// its lowest bit, so odd numbers are leaves. The parent is the neighbour one bit higher; if that
/// is too large, the one below v.
std::uint32_t parent_in_order(std::uint32_t v, std::uint32_t devices) {
  const std::uint32_t root = std::bit_floor(devices);
  if (v == root)
    return v;
  const std::uint32_t lowest = v & (~v + 1);
  const std::uint32_t above = (v ^ lowest) | (lowest << 1);
  return above <= devices ? above : v ^ lowest;
}

/// Lists parents before children.
std::vector<std::uint32_t> from_root(const tree_parents& tree) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t v = 0; v < tree.size(); ++v)
    if (tree[v] == v)
      order.push_back(v);
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::uint32_t v = 0; v < tree.size(); ++v)
      if (tree[v] == order[i] && v != order[i])
        order.push_back(v);
  return order;
}

} // namespace

std::pair<tree_parents, tree_parents> two_trees(std::uint32_t devices) {
  assert(devices > 0);
  tree_parents first(devices), second(devices);
  for (std::uint32_t v = 1; v <= devices; ++v) {
    const std::uint32_t parent = parent_in_order(v, devices);
    first[v - 1] = parent - 1;
    if (devices % 2 == 0) // Mirrored: v becomes devices + 1 - v.
      second[devices - v] = devices - parent;
    else // Shifted: v becomes v - 1, and 1 becomes the last.
      second[(v + devices - 2) % devices] = (parent + devices - 2) % devices;
  }
  return {first, second};
}

schedule double_tree(std::uint32_t devices, std::uint32_t pieces) {
  assert(pieces > 0);
  schedule made{collective::all_reduce, devices, 0, 2 * pieces, {}};
  const auto [first, second] = two_trees(devices);
  const auto first_order = from_root(first);
  const auto second_order = from_root(second);
  for (std::uint32_t chunk = 0; chunk < made.chunks; ++chunk) {
    const auto& tree = chunk % 2 == 0 ? first : second;
    const auto& order = chunk % 2 == 0 ? first_order : second_order;
    for (std::size_t i = devices - 1; i > 0; --i)
      made.steps.push_back({order[i], tree[order[i]], chunk, step_kind::reduce});
    for (std::size_t i = 1; i < devices; ++i)
      made.steps.push_back({tree[order[i]], order[i], chunk, step_kind::copy});
  }
  return made;
}

} // namespace troupe::kernels
