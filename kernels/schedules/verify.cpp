#include "kernels/schedules/verify.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <vector>

namespace troupe::kernels {

namespace {

using std::to_string;

/// A set of devices, one bit each.
using device_set = std::vector<std::uint64_t>;

device_set only(std::uint32_t device, std::uint32_t devices) {
  device_set made(devices / 64 + 1);
  made[device / 64] = std::uint64_t{1} << (device % 64);
  return made;
}

device_set everyone(std::uint32_t devices) {
  device_set made(devices / 64 + 1);
  for (std::uint32_t device = 0; device < devices; ++device)
    made[device / 64] |= std::uint64_t{1} << (device % 64);
  return made;
}

/// Returns the smallest device in `a` but not in `b`, or in both.
std::optional<std::uint32_t> first_of(const device_set& a, const device_set& b, bool in_both) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (const auto word = a[i] & (in_both ? b[i] : ~b[i]); word != 0)
      return static_cast<std::uint32_t>(64 * i)
             + static_cast<std::uint32_t>(std::countr_zero(word));
  return {};
}

/// Returns whether devices end with the owners' values, not with sums.
bool only_copies(const schedule& plan) {
  return plan.goal == collective::all_gather || plan.goal == collective::broadcast;
}

/// The buffers of all places; an empty set means that the chunk is unwritten.
class symbolic_run {
public:
  explicit symbolic_run(const schedule& plan)
      : plan_(plan), cells_(std::size_t{plan.devices + plan.staging} * plan.chunks,
                            device_set(plan.devices / 64 + 1)) {
    for (std::uint32_t device = 0; device < plan.devices; ++device)
      for (std::uint32_t chunk = 0; chunk < plan.chunks; ++chunk)
        if (!only_copies(plan) || owner_of_chunk(plan, chunk) == device)
          at(device, chunk) = only(device, plan.devices);
  }

  std::string name(std::uint32_t place) const {
    return place < plan_.devices ? "device " + to_string(place)
                                 : "staging place " + to_string(place - plan_.devices);
  }

  device_set& at(std::uint32_t place, std::uint32_t chunk) {
    return cells_[std::size_t{place} * plan_.chunks + chunk];
  }

  bool is_written(std::uint32_t place, std::uint32_t chunk) {
    return std::ranges::any_of(at(place, chunk), [](auto word) { return word != 0; });
  }

  std::optional<std::string> fault_of_indices(const schedule_step& step) const {
    for (const auto place : {step.from, step.to})
      if (place >= plan_.devices + plan_.staging)
        return " names place " + to_string(place) + "; there are " + to_string(plan_.devices)
               + " devices and " + to_string(plan_.staging) + " staging places";
    if (step.chunk >= plan_.chunks)
      return " names chunk " + to_string(step.chunk) + "; there are " + to_string(plan_.chunks);
    if (step.from == step.to)
      return " sends from " + name(step.from) + " to itself";
    return {};
  }

  std::optional<std::string> carry_out(const schedule_step& step) {
    const std::string chunk = "chunk " + to_string(step.chunk) + " of ";
    if (!is_written(step.from, step.chunk))
      return " reads " + chunk + name(step.from) + " before it is written";
    const device_set& source = at(step.from, step.chunk);
    device_set& target = at(step.to, step.chunk);
    if (step.kind == step_kind::copy) {
      target = source;
      return {};
    }
    if (!is_written(step.to, step.chunk))
      return " adds to " + chunk + name(step.to) + " before it is written";
    if (const auto twice = first_of(source, target, true))
      return " adds the contribution of device " + to_string(*twice) + " to " + chunk
             + name(step.to) + " a second time";
    for (std::size_t i = 0; i < target.size(); ++i)
      target[i] |= source[i];
    return {};
  }

  std::optional<std::string> fault_of_end() {
    for (std::uint32_t chunk = 0; chunk < plan_.chunks; ++chunk)
      for (std::uint32_t device = 0; device < plan_.devices; ++device) {
        if (plan_.goal == collective::reduce_scatter && owner_of_chunk(plan_, chunk) != device)
          continue;
        const auto wanted = only_copies(plan_) ? only(owner_of_chunk(plan_, chunk), plan_.devices)
                                               : everyone(plan_.devices);
        if (const auto missing = first_of(wanted, at(device, chunk), false))
          return name(device) + " ends without the contribution of device " + to_string(*missing)
                 + " to chunk " + to_string(chunk);
      }
    return {};
  }

private:
  const schedule& plan_;
  std::vector<device_set> cells_;
};

std::optional<std::string> fault_of_shape(const schedule& plan) {
  if (plan.devices == 0)
    return "there are no devices";
  if (plan.chunks == 0)
    return "there are no chunks";
  if (plan.goal == collective::broadcast && plan.root >= plan.devices)
    return "the root is device " + to_string(plan.root) + " of " + to_string(plan.devices);
  const bool has_owners =
    plan.goal == collective::reduce_scatter || plan.goal == collective::all_gather;
  if (has_owners && plan.chunks % plan.devices != 0)
    return to_string(plan.chunks) + " chunks cannot be owned by " + to_string(plan.devices)
           + " devices equally";
  return {};
}

} // namespace

std::optional<std::string> fault_of(const schedule& plan, const link_view& links) {
  if (auto fault = fault_of_shape(plan))
    return fault;
  symbolic_run run(plan);
  std::map<std::tuple<std::uint32_t, std::uint32_t, device_set>, std::size_t> crossings;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const auto& step = plan.steps[i];
    const std::string who = "step " + to_string(i);
    if (const auto fault = run.fault_of_indices(step))
      return who + *fault;
    const device_set contents = run.at(step.from, step.chunk);
    if (const auto fault = run.carry_out(step))
      return who + *fault;
    for (const auto link : links.path(step.from, step.to)) {
      const auto [at, is_first] = crossings.try_emplace({link, step.chunk, contents}, i);
      if (!is_first)
        return who + " sends chunk " + to_string(step.chunk) + " over " + links.name(link)
               + " with the same contents as step " + to_string(at->second);
    }
  }
  return run.fault_of_end();
}

std::optional<std::string> fault_of(const schedule& plan) {
  const std::uint32_t places = plan.devices + plan.staging;
  std::uint32_t link = 0;
  return fault_of(plan, {[&](std::uint32_t from, std::uint32_t to) {
                           link = from * places + to;
                           return std::span<const std::uint32_t>(&link, 1);
                         },
                         [&](std::uint32_t pair) {
                           return "the link from place " + to_string(pair / places) + " to place "
                                  + to_string(pair % places);
                         }});
}

} // namespace troupe::kernels
