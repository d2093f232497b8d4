#include "kernels/devices/device_executor.hpp"

#include "kernels/vector_ops.hpp"

#include "fmt/core.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe {

result<device_executor> device_executor::make(device_platform& on, kernels::schedule plan,
                                              std::vector<std::uint32_t> devices, std::size_t count,
                                              device_executor_options options) {
  if (devices.size() != plan.devices || devices.empty() || options.streams == 0)
    return {errc::invalid_argument,
            fmt::format("a schedule of {} devices cannot run on {}", plan.devices, devices.size())};
  device_executor made{on};
  if (auto prepared = made.prepare(plan, devices, count, options.streams); !prepared)
    return prepared.error();
  return made;
}

result<void> device_executor::prepare(const kernels::schedule& plan,
                                      const std::vector<std::uint32_t>& devices, std::size_t count,
                                      std::uint32_t streams) {
  devices_ = plan.devices;
  count_ = count;
  on_->link_replicas(devices);
  const std::size_t chunk_max = plan.chunks == 0 ? 0 : count / plan.chunks + 1;
  for (const std::uint32_t device : devices)
    for (std::uint32_t i = 0; i < streams; ++i) {
      auto stream = make_stream(*on_, device);
      auto arrivals = make_memory<float>(*on_, device, chunk_max);
      if (!stream || !arrivals)
        return stream ? arrivals.error() : stream.error();
      streams_.push_back(*std::move(stream));
      arrivals_.push_back(*std::move(arrivals));
    }
  for (std::uint32_t i = 0; i < plan.staging; ++i) {
    auto memory = make_pinned<float>(*on_, count);
    if (!memory)
      return memory.error();
    staging_.push_back(*std::move(memory));
  }
  const auto before = kernels::dependencies(plan);
  for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
    const auto& step = plan.steps[i];
    // The receiver does the work; for a staging place, the sender does.
    const std::uint32_t place = step.to < devices_ ? step.to : step.from;
    assert(place < devices_);
    steps_.push_back({step,
                      kernels::range_of_chunk(count, plan.chunks, step.chunk),
                      place * streams + step.chunk % streams,
                      {}});
    for (const std::uint32_t earlier : before[i])
      if (steps_[earlier].stream != steps_[i].stream) {
        steps_[i].waits.push_back(earlier);
        steps_[earlier].awaited = true;
      }
  }
  for (const auto& step : steps_) {
    events_.emplace_back();
    if (!step.awaited)
      continue;
    auto event = make_event(*on_, devices[step.stream / streams]);
    if (!event)
      return event.error();
    events_.back() = *std::move(event);
  }
  return {};
}

result<void> device_executor::run(std::span<const std::span<float>> buffers) {
  assert(buffers.size() == devices_);
  assert(std::ranges::all_of(buffers, [this](auto x) { return x.size() == count_; }));
  const auto chunk_of = [&](std::uint32_t place, const kernels::chunk_range& range) {
    const auto whole = place < devices_ ? buffers[place] : staging_[place - devices_].span();
    return whole.subspan(range.begin, range.size);
  };
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const auto& [step, range, number, waits, awaited] = steps_[i];
    const auto& at = streams_[number].get();
    for (const std::uint32_t earlier : waits)
      on_->wait(at, events_[earlier].get());
    const auto from = chunk_of(step.from, range), to = chunk_of(step.to, range);
    if (step.kind == kernels::step_kind::copy) {
      on_->copy(at, to.data(), from.data(), range.size * sizeof(float));
    } else if (step.from >= devices_ || step.to >= devices_) {
      kernels::add(at, to, from); // Devices read and write pinned memory directly.
    } else {
      const auto here = arrivals_[number].span().first(range.size);
      on_->copy(at, here.data(), from.data(), range.size * sizeof(float));
      kernels::add(at, to, here);
    }
    if (awaited)
      on_->record(at, events_[i].get());
  }
  result<void> outcome;
  for (const auto& stream : streams_)
    if (auto done = on_->synchronize(stream.get()); !done && outcome)
      outcome = done;
  return outcome;
}

} // namespace troupe
