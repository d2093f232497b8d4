// Decides which replica a router asks for values. The rest of `router` is in router.cpp.
#include "actors/protocol/worker/router.hpp"

#include <algorithm>

namespace troupe {

namespace {

/// A replica that sends pull_reply more slowly than this is too busy.
constexpr std::uint64_t bytes_per_ms = 32 << 10;

std::uint64_t bytes_of(const pull_request& what) {
  std::uint64_t floats = 0;
  for (const auto& x : what.ranges)
    floats += x.count;
  for (const auto& x : what.rows)
    floats += x.count * x.width;
  return floats * sizeof(float);
}

} // namespace

/// Returns whether replicas other than the head may answer the request.
bool router::is_anywhere(const chain_queue& of, const request& what) const {
  return !what.push && what.pull && !of.entry.others.empty() && (!any_ssp_ || what.pull->latest);
}

/// Returns the replica to ask first for the values, once the push is done.
std::size_t router::first_reader(const chain_queue& of, const request& what) const {
  const bool spreads = options_.reads == read_target::any && what.pull && !what.pull->latest;
  if (!spreads || any_ssp_ || of.entry.others.empty())
    return 0;
  return (what.pull->step.worker.value + of.entry.chain.value) % (1 + of.entry.others.size());
}

/// Returns the replica to ask after the present one. Besides the head, only the tail answers a
/// `latest` pull.
std::size_t router::next_reader(const chain_queue& of, const open_part& part) const {
  if (part.what.pull->latest)
    return part.at == 0 ? of.entry.others.size() : 0;
  return (part.at + 1) % (1 + of.entry.others.size());
}

void router::wait_patiently(const chain_queue& of, open_part& part, time_point now) const {
  const bool never_waits = is_anywhere(of, part.what) && (!any_bsp_ || part.what.pull->latest);
  const bool is_patient = options_.read_patience == std::chrono::milliseconds{0};
  part.patience_end = {};
  if (never_waits && !is_patient)
    part.patience_end = now + options_.read_patience
                        + std::chrono::milliseconds{bytes_of(*part.what.pull) / bytes_per_ms};
}

void router::place(chain_queue& to, part_id id, std::size_t at, time_point now,
                   router_effects& effects) {
  auto& part = to.open.at(id);
  part.at = at <= to.entry.others.size() ? at : 0;
  wait_patiently(to, part, now);
  if (part.at > 0)
    send(to, id, effects);
  else
    send_in_turn(to, id, effects);
}

} // namespace troupe
