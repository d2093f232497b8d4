#include "kernels/devices/device_sum.hpp"

#include "kernels/schedules/planner.hpp"
#include "kernels/schedules/presets.hpp"
#include "kernels/vector_ops.hpp"

#include "fmt/core.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

namespace troupe {

namespace {

// PCIe 4.0 with 16 lanes behind a switch, and the start-up time of a copy between two GPUs.
constexpr double link_bytes_per_second = 25e9, link_latency_seconds = 10e-6;

// A sum takes milliseconds. If it took much longer, the process's workers would count as lost.
constexpr std::chrono::seconds nccl_patience{2};

// Sets of devices whose schedules are kept: a round without some devices is a set of its own.
constexpr std::size_t plans_max = 16;

kernels::strategy_plan plan_for(std::uint32_t devices, const device_sum_options& options,
                                std::size_t count) {
  const kernels::routing ways{
    options.net ? options.net(devices)
                : kernels::star(devices, link_bytes_per_second, link_latency_seconds)};
  auto plans = kernels::plan_all_reduce(ways, static_cast<double>(count * sizeof(float)));
  return std::move(plans[kernels::choose(plans)]);
}

} // namespace

device_sum::device_sum(std::unique_ptr<device_platform> on, const device_sum_options& options,
                       std::size_t count)
    : on_(std::move(on)), options_(options), count_(count) {}

result<void> device_sum::fetch(std::uint32_t device, std::span<const float> values,
                               host_stretches to) {
  const auto from = slot_at(device);
  if (!from)
    return from.error();
  land(**from, values, 0);
  return hand_out({device}, to);
}

result<void> device_sum::add_up(std::span<const device_share> shares, host_stretches to) {
  device_list devices;
  for (const auto& x : shares)
    devices.push_back(x.device);
  std::ranges::sort(devices);
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  for (const std::uint32_t device : devices)
    if (auto begun = gather(device, shares, to); !begun)
      return begun;
  if (auto done = synchronize(devices); !done)
    return done;
  if (devices.size() > 1 && has_nccl()) {
    const auto done = reduce_by_nccl(devices);
    if (done)
      return hand_out(devices, to);
    tell("devices add up gradients without NCCL: " + done.error().text);
    nccl_.reset();
    for (auto& [of, group] : connected_)
      group.abandon();
    connected_.clear();
  }
  if (auto done = reduce(devices); !done)
    return done;
  return hand_out(devices, to);
}

result<device_sum::slot*> device_sum::slot_at(std::uint32_t device) {
  if (landing_.size() < count_)
    if (auto made = put(landing_, make_pinned<float>(*on_, count_)); !made)
      return made.error();
  if (const auto known = slots_.find(device); known != slots_.end())
    return &known->second;
  slot made;
  if (auto ready = put(made.stream, make_stream(*on_, device)); !ready)
    return ready.error();
  return &slots_.emplace(device, std::move(made)).first->second;
}

/// Adds up the shares of one device, in separate memory.
result<void> device_sum::gather(std::uint32_t device, std::span<const device_share> shares,
                                host_stretches to) {
  const auto found = slot_at(device);
  if (!found)
    return found.error();
  slot& here = **found;
  if (here.sum.size() < count_)
    if (auto made = put(here.sum, make_memory<float>(*on_, device, count_)); !made)
      return made;
  const auto& at = here.stream.get();
  bool is_first = true;
  for (const auto& x : shares) {
    if (x.device != device)
      continue;
    assert(x.values.size() == count_ && x.factors.size() == to.size());
    if (is_first)
      on_->copy(at, here.sum.data(), x.values.data(), count_ * sizeof(float));
    std::size_t first = 0;
    for (std::size_t k = 0; k < to.size(); ++k) {
      const auto sum = here.sum.span().subspan(first, to[k].size());
      if (!is_first)
        kernels::axpy(at, sum, x.factors[k], x.values.subspan(first, to[k].size()));
      else if (x.factors[k] != 1.0f)
        kernels::scale(at, sum, x.factors[k]);
      first += to[k].size();
    }
    is_first = false;
  }
  return {};
}

result<device_sum::device_plan*> device_sum::plan_of(const device_list& devices) {
  if (const auto known = plans_.find(devices); known != plans_.end())
    return &known->second;
  if (plans_.size() == plans_max)
    plans_.clear();
  device_plan made;
  if (devices.size() > 1) {
    const auto chosen = plan_for(static_cast<std::uint32_t>(devices.size()), options_, count_);
    auto [plan, homes] = kernels::collect(chosen.plan);
    auto executor = device_executor::make(*on_, std::move(plan), devices, count_);
    if (!executor)
      return executor.error();
    made.executor.emplace(*std::move(executor));
    made.homes = std::move(homes);
    tell(fmt::format("{} devices add up gradients: {}", devices.size(), chosen.name));
  }
  return &plans_.emplace(devices, std::move(made)).first->second;
}

/// Returns whether NCCL can be used; loads it at the first call.
bool device_sum::has_nccl() {
  if (const auto load = std::exchange(options_.nccl, nullptr)) {
    if (const auto api = load())
      nccl_ = *api;
    else
      tell("devices add up gradients without NCCL: " + api.error().text);
  }
  return nccl_.has_value();
}

/// Adds up by a schedule; then copies each chunk of the sum to the host from its device.
result<void> device_sum::reduce(const device_list& devices) {
  const auto found = plan_of(devices);
  if (!found)
    return found.error();
  device_plan& with = **found;
  std::vector<std::span<float>> sums;
  for (const std::uint32_t device : devices)
    sums.push_back(slots_.at(device).sum.span());
  if (with.executor)
    if (auto done = with.executor->run(sums); !done)
      return done;
  const auto chunks = static_cast<std::uint32_t>(with.homes.size());
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    const auto range = kernels::range_of_chunk(count_, chunks, chunk);
    const std::uint32_t home = with.homes[chunk];
    land(slots_.at(devices[home]), sums[home].subspan(range.begin, range.size), range.begin);
  }
  return {};
}

/// Adds up by NCCL. If it fails, the shares are unchanged.
result<void> device_sum::reduce_by_nccl(const device_list& devices) {
  auto group = connected_.find(devices);
  if (group == connected_.end()) {
    if (connected_.size() == plans_max)
      connected_.clear();
    auto made = nccl_group::make(*on_, *nccl_, devices, nccl_patience);
    if (!made)
      return made.error();
    group = connected_.emplace(devices, *std::move(made)).first;
  }
  std::vector<nccl_group::share> all;
  for (const std::uint32_t device : devices) {
    auto& x = slots_.at(device);
    if (x.received.size() < count_)
      if (auto made = put(x.received, make_memory<float>(*on_, device, count_)); !made)
        return made;
    all.push_back({x.sum.span(), x.received.span()});
  }
  if (auto done = group->second.all_reduce(all); !done)
    return done;
  if (group->second.left().size() < all.size()) // The lost device's share is missing in the sum.
    return {errc::device_failed, "a device was lost while NCCL added up"};
  const auto& first = slots_.at(devices.front());
  land(first, first.received.span(), 0);
  return {};
}

void device_sum::tell(const std::string& line) const {
  if (options_.tell)
    options_.tell(line);
}

/// Enqueues a copy to the host; it is complete when the stream was waited for.
void device_sum::land(const slot& from, std::span<const float> values, std::size_t first) {
  assert(first + values.size() <= count_);
  on_->copy(from.stream.get(), landing_.data() + first, values.data(), values.size_bytes());
}

result<void> device_sum::synchronize(const device_list& devices) {
  for (const std::uint32_t device : devices)
    if (auto done = on_->synchronize(slots_.at(device).stream.get()); !done)
      return done;
  return {};
}

result<void> device_sum::hand_out(const device_list& devices, host_stretches to) {
  if (auto done = synchronize(devices); !done)
    return done;
  const float* from = landing_.data();
  for (const auto& x : to) {
    std::copy_n(from, x.size(), x.data());
    from += x.size();
  }
  return {};
}

} // namespace troupe
