#include "cli/chaos/facts.hpp"

#include <algorithm>

namespace troupe::chaos {

namespace {

/// The display may show an event as late as this.
constexpr double notice_seconds = 0.5;

} // namespace

void largest::take(double seen, const std::string& who) {
  if (seen <= value)
    return;
  value = seen;
  whose = who;
}

std::array<std::uint64_t, fault_kinds> run_facts::fault_counts() const {
  std::array<std::uint64_t, fault_kinds> counts{};
  for (const auto& fault : faults)
    ++counts[static_cast<std::size_t>(fault.what.kind)];
  return counts;
}

std::uint64_t run_facts::faults_apart() const {
  return static_cast<std::uint64_t>(std::ranges::count(faults, false, &fault_record::overlaps));
}

bool run_facts::is_overlapped(double at) const {
  return std::ranges::any_of(faults, [&](const fault_record& fault) {
    const auto recovered = fault.overlaps ? active_at(fault.ended) : std::nullopt;
    return fault.overlaps && at >= fault.began && (!recovered || at <= *recovered);
  });
}

double run_facts::last_fault_ended() const { return faults.empty() ? 0 : faults.back().ended; }

std::optional<double> run_facts::active_at(double since) const {
  for (const auto& line : progress)
    if (line.at > since + notice_seconds && line.phase == "training" && line.active == members())
      return line.at;
  return std::nullopt;
}

bool run_facts::whole_since(double at) const { return active_at(at).has_value(); }

std::optional<double> run_facts::healed_after(double fault_ended) const {
  const auto at = active_at(fault_ended);
  return at ? std::optional{*at - fault_ended} : std::nullopt;
}

std::uint64_t run_facts::count(event_kind kind, double from, double to) const {
  return static_cast<std::uint64_t>(std::ranges::count_if(
    events, [&](const event& x) { return x.at > from && x.at <= to && x.what.kind == kind; }));
}

} // namespace troupe::chaos
