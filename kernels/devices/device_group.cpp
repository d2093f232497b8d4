#include "kernels/devices/device_group.hpp"

#include <utility>

namespace troupe {

template <class Work>
result<void> device_group::with_devices(host_stretches to, Work work) {
  std::size_t count = 0;
  for (const auto& x : to)
    count += x.size();
  if (!open_sum_ || open_sum_->count() != count) {
    auto on = open_();
    if (!on)
      return on.error();
    open_sum_ = std::make_unique<device_sum>(*std::move(on), options_, count);
  }
  auto outcome = work(*open_sum_);
  if (!outcome)
    open_sum_.reset();
  return outcome;
}

result<void> device_group::add_up(std::span<const device_share> shares, host_stretches to) {
  const std::lock_guard guard{mutex_};
  auto outcome = with_devices(to, [&](device_sum& with) { return with.add_up(shares, to); });
  const bool fails = !outcome;
  if (std::exchange(sums_fail_, fails) != fails)
    tell(fails ? "devices do not add up gradients, so these go one by one: " + outcome.error().text
               : "devices add up gradients again");
  return outcome;
}

result<void> device_group::fetch(std::uint32_t device, std::span<const float> values,
                                 host_stretches to) {
  const std::lock_guard guard{mutex_};
  auto outcome = with_devices(to, [&](device_sum& with) { return with.fetch(device, values, to); });
  if (outcome)
    fetch_fails_.erase(device);
  else if (fetch_fails_.insert(device).second)
    tell("gradients on device " + std::to_string(device)
         + " cannot be had, so they are computed again: " + outcome.error().text);
  return outcome;
}

void device_group::tell(const std::string& line) const {
  if (options_.tell)
    options_.tell(line);
}

} // namespace troupe
