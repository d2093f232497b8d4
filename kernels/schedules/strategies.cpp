#include "kernels/schedules/strategies.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace troupe::kernels {

schedule central(std::uint32_t devices, std::uint32_t root, std::uint32_t pieces) {
  assert(root < devices && pieces > 0);
  schedule made{collective::all_reduce, devices, 0, pieces, {}};
  const std::uint32_t others = devices - 1;
  for (std::uint32_t chunk = 0; chunk < pieces; ++chunk) {
    // Chunks begin with different senders, so that all of them send at the same time.
    const auto other = [&](std::uint32_t i) { return (root + 1 + (chunk + i) % others) % devices; };
    for (std::uint32_t i = 0; i < others; ++i)
      made.steps.push_back({other(i), root, chunk, step_kind::reduce});
    for (std::uint32_t i = 0; i < others; ++i)
      made.steps.push_back({root, other(i), chunk, step_kind::copy});
  }
  return made;
}

schedule through_host(std::uint32_t devices, std::uint32_t pieces) {
  assert(devices > 0 && pieces > 0);
  const std::uint32_t memory = devices;
  schedule made{collective::all_reduce, devices, 1, pieces, {}};
  for (std::uint32_t chunk = 0; chunk < pieces; ++chunk) {
    const auto device = [&](std::uint32_t i) { return (chunk + i) % devices; };
    for (std::uint32_t i = 0; i < devices; ++i)
      made.steps.push_back(
        {device(i), memory, chunk, i == 0 ? step_kind::copy : step_kind::reduce});
    for (std::uint32_t i = 0; i < devices; ++i)
      made.steps.push_back({memory, device(i), chunk, step_kind::copy});
  }
  return made;
}

schedule block(std::uint32_t devices, std::uint32_t pieces, collective goal) {
  assert(devices > 0 && pieces > 0);
  schedule made{goal, devices, 0, devices * pieces, {}};
  // In round r each device sends to the one r places on, so no two share a receiver.
  if (goal != collective::all_gather)
    for (std::uint32_t r = 1; r < devices; ++r)
      for (std::uint32_t from = 0; from < devices; ++from)
        for (std::uint32_t piece = 0; piece < pieces; ++piece) {
          const std::uint32_t to = (from + r) % devices;
          made.steps.push_back({from, to, to * pieces + piece, step_kind::reduce});
        }
  if (goal != collective::reduce_scatter)
    for (std::uint32_t r = 1; r < devices; ++r)
      for (std::uint32_t from = 0; from < devices; ++from)
        for (std::uint32_t piece = 0; piece < pieces; ++piece)
          made.steps.push_back(
            {from, (from + r) % devices, from * pieces + piece, step_kind::copy});
  return made;
}

schedule broadcast(std::uint32_t devices, std::uint32_t root, std::uint32_t pieces) {
  assert(root < devices && pieces > 0);
  schedule made{collective::broadcast, devices, 0, pieces, {}, root};
  for (std::uint32_t chunk = 0; chunk < pieces; ++chunk)
    for (std::uint32_t i = 0; i + 1 < devices; ++i)
      made.steps.push_back(
        {(root + i) % devices, (root + i + 1) % devices, chunk, step_kind::copy});
  return made;
}

ring_path ring_in_order(std::uint32_t devices) {
  ring_path made{std::vector<std::uint32_t>(devices), 1};
  std::iota(made.order.begin(), made.order.end(), 0u);
  return made;
}

ring_path reversed(ring_path ring) {
  std::ranges::reverse(ring.order);
  return ring;
}

namespace {

/// One ring's part of rings(): a block of `size` chunks for each device, `stride` chunks apart.
struct ring_blocks {
  const std::vector<std::uint32_t>& order;
  std::uint32_t first;
  std::uint32_t size;
  std::uint32_t stride;
};

/// Moves every block one place on: in round 0 from its owner, in round n - 1 to its owner.
void add_round(schedule& made, const ring_blocks& ring, std::uint32_t round, step_kind kind) {
  const auto devices = static_cast<std::uint32_t>(ring.order.size());
  for (std::uint32_t place = 0; place < devices; ++place)
    for (std::uint32_t piece = 0; piece < ring.size; ++piece)
      made.steps.push_back({ring.order[(place + round) % devices],
                            ring.order[(place + round + 1) % devices],
                            ring.order[place] * ring.stride + ring.first + piece, kind});
}

} // namespace

schedule rings(std::span<const ring_path> paths, std::uint32_t pieces, collective goal) {
  assert(!paths.empty() && pieces > 0);
  const auto devices = static_cast<std::uint32_t>(paths[0].order.size());
  std::uint32_t shares = 0;
  for (const auto& path : paths) {
    assert(path.order.size() == devices && path.share > 0);
    shares += path.share;
  }
  const std::uint32_t stride = shares * pieces;
  schedule made{goal, devices, 0, devices * stride, {}};
  const auto add_rounds = [&](std::uint32_t first_round, step_kind kind) {
    for (std::uint32_t round = first_round; round + 1 < devices + first_round; ++round) {
      std::uint32_t first = 0;
      for (const auto& path : paths) {
        add_round(made, {path.order, first, path.share * pieces, stride}, round, kind);
        first += path.share * pieces;
      }
    }
  };
  if (goal != collective::all_gather)
    add_rounds(1, step_kind::reduce);
  if (goal != collective::reduce_scatter)
    add_rounds(0, step_kind::copy);
  return made;
}

} // namespace troupe::kernels
