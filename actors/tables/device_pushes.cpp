#include "actors/tables/device_pushes.hpp"

#include "actors/tables/gradient_sum.hpp"
#include "kernels/devices/device_group.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe {

namespace {

/// Gives each piece memory of the host; returns that memory.
std::vector<std::span<float>> make_room(std::vector<piece>& pieces, buffer_pool& pool) {
  std::vector<std::span<float>> room;
  for (piece& x : pieces) {
    const auto memory = pool.floats(x.where.count);
    room.emplace_back(memory.get(), x.where.count);
    x.values = memory;
  }
  return room;
}

std::vector<float> clips_of(const job_spec& job, const push_request& push) {
  std::vector<float> all;
  for (const piece& x : push.pieces)
    all.push_back(job.tables[x.where.table.value].optimizer.clip_scale(push.gradient_norm));
  return all;
}

result<push_ptr> add_up_on_devices(const job_spec& job, std::span<const push_ptr> pushes,
                                   buffer_pool& pool) {
  const push_request& first = *pushes.front();
  const auto fits = [&](const push_ptr& x) {
    return std::ranges::equal(x->pieces, first.pieces, {}, &piece::where, &piece::where);
  };
  auto sum = sum_without_values(first.tables, pushes);
  if (!sum || !std::ranges::all_of(pushes, fits))
    return {errc::sum_not_applicable, "they do not add up"};
  std::vector<std::vector<float>> clips;
  std::vector<device_share> shares;
  for (const push_ptr& x : pushes) {
    clips.push_back(clips_of(job, *x));
    shares.push_back({x->on_device->device, x->on_device->values, clips.back()});
  }
  sum->pieces = first.pieces;
  const auto room = make_room(sum->pieces, pool);
  if (auto done = first.on_device->group->add_up(shares, room); !done)
    return done.error();
  return std::make_shared<const push_request>(*std::move(sum));
}

} // namespace

bool are_on_one_group(std::span<const push_ptr> pushes) {
  const auto group_of = [](const push_ptr& x) {
    return x->on_device ? x->on_device->group.get() : nullptr;
  };
  auto* const group = group_of(pushes.front());
  return group != nullptr
         && std::ranges::all_of(pushes, [&](const push_ptr& x) { return group_of(x) == group; });
}

result<push_ptr> bring_to_host(push_ptr push, buffer_pool& pool) {
  if (!push->on_device)
    return push;
  push_request here = *push;
  const auto from = std::exchange(here.on_device, nullptr);
  const auto room = make_room(here.pieces, pool);
  if (auto done = from->group->fetch(from->device, from->values, room); !done)
    return done.error();
  return std::make_shared<const push_request>(std::move(here));
}

result<push_ptr> add_up_anywhere(const job_spec& job, std::span<const push_ptr> pushes,
                                 buffer_pool& pool) {
  if (are_on_one_group(pushes))
    return add_up_on_devices(job, pushes, pool);
  std::vector<push_ptr> here;
  for (const push_ptr& x : pushes) {
    auto brought = bring_to_host(x, pool);
    if (!brought)
      return brought.error();
    here.push_back(*std::move(brought));
  }
  if (auto sum = add_up(job, here.front()->tables, here, pool))
    return sum;
  return {errc::sum_not_applicable, "they do not add up"};
}

} // namespace troupe
