#include "actors/graph/ranks/bucket_flow.hpp"

#include <algorithm>

namespace troupe {

bucket_flow::bucket_flow(std::span<const sum_part> parts, std::size_t leaving_max)
    : leaving_max_(leaving_max) {
  for (const auto& part : parts)
    parts_.push_back({part, schedule_flow{*part.plan}});
}

void bucket_flow::ready(std::uint32_t part) { parts_.at(part).is_ready = true; }

void bucket_flow::all_ready() {
  for (auto& part : parts_)
    part.is_ready = true;
}

std::optional<bucket_flow::own_step> bucket_flow::next() {
  for (std::uint32_t i = 0; i < parts_.size(); ++i) {
    auto& part = parts_[i];
    const auto now = part.is_ready ? part.flow.next(leaving_ < leaving_max_) : std::nullopt;
    if (!now)
      continue;
    if (now->step.from == part.what.plan->rank)
      leaving_ += size_of(part, now->step.chunk);
    return own_step{i, *now};
  }
  return std::nullopt;
}

bool bucket_flow::arrived(std::uint32_t part, std::uint32_t number, std::uint32_t from) {
  return part < parts_.size() && parts_[part].flow.arrived(number, from);
}

void bucket_flow::left(std::uint32_t part, std::uint32_t chunk) {
  parts_[part].flow.left(chunk);
  leaving_ -= size_of(parts_[part], chunk);
}

bool bucket_flow::awaits(std::uint32_t from) const {
  return std::ranges::any_of(parts_, [&](const auto& part) { return part.flow.awaits(from); });
}

bool bucket_flow::done() const {
  return std::ranges::all_of(parts_,
                             [](const auto& part) { return part.is_ready && part.flow.done(); });
}

std::size_t bucket_flow::size_of(const entry& part, std::uint32_t chunk) const {
  return kernels::range_of_chunk(part.what.numbers.size(), part.what.plan->chunks, chunk).size;
}

} // namespace troupe
