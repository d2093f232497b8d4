#include "cli/chaos/fault_plan.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace troupe::chaos {

namespace {

using std::chrono::milliseconds;

constexpr std::array<std::string_view, fault_kinds> names{"kill server",
                                                          "kill worker",
                                                          "kill actor",
                                                          "kill coordinator",
                                                          "stop shorter than a lease (0.8 s)",
                                                          "stop longer than a lease (0.8 s)",
                                                          "stop longer than silence (1.3 s)",
                                                          "stop longer than death (5 s)",
                                                          "cut both ways",
                                                          "cut one way in",
                                                          "cut one way out",
                                                          "full disk",
                                                          "flipped bit"};

struct span {
  int least_ms = 0, most_ms = 0;
  int mean_ms() const { return (least_ms + most_ms) / 2; }
};

constexpr span pauses{200, 900};
/// Milliseconds of a long cut, where there is time for it.
constexpr span long_cuts{5500, 7000};
constexpr unsigned long_cuts_percent = 25;
/// Mean time until all members are seen active again.
constexpr int recovery_ms = 1000;

/// Returns milliseconds. The limits are a lease of 0.8 s, a silence of 1.3 s and a death after 5 s.
span durations_of(fault_kind kind) {
  using enum fault_kind;
  switch (kind) {
  case stop_short: return {100, 600};
  case stop_lease: return {900, 1200};
  case stop_silence: return {1600, 3500};
  case stop_death: return {5500, 7000};
  case cut_both:
  case cut_in:
  case cut_out: return {300, 3500};
  case full_disk: return {3000, 5000};
  default: return {};
  }
}

int mean_duration_ms(fault_kind kind, bool long_faults) {
  const int usual = durations_of(kind).mean_ms();
  if (!is_cut(kind) || !long_faults)
    return usual;
  constexpr int percent = long_cuts_percent;
  return ((100 - percent) * usual + percent * long_cuts.mean_ms()) / 100;
}

/// Returns true in `percent` of 100 cases.
bool happens(std::mt19937_64& dice, unsigned percent) { return dice() % 100 < percent; }

} // namespace

bool is_cut(fault_kind kind) { return kind >= fault_kind::cut_both && kind <= fault_kind::cut_out; }

std::string_view name_of(fault_kind kind) { return names[static_cast<std::size_t>(kind)]; }

std::vector<fault_kind> kinds_of(const plan_options& options) {
  std::vector<fault_kind> all;
  const auto add = [&all](bool asked, std::initializer_list<fault_kind> kinds) {
    if (asked)
      all.insert(all.end(), kinds);
  };
  using enum fault_kind;
  add(options.kill, {kill_server, kill_worker, kill_coordinator});
  add(options.kill && options.actors > 0, {kill_actor});
  add(options.stop, {stop_short, stop_lease, stop_silence});
  add(options.stop && options.long_faults, {stop_death});
  add(options.partition, {cut_both, cut_in, cut_out});
  add(options.full_disk, {full_disk});
  add(options.flip, {flip});
  return all;
}

milliseconds round_time(const plan_options& options) {
  milliseconds all{0};
  for (const auto kind : kinds_of(options))
    all +=
      milliseconds{pauses.mean_ms() + mean_duration_ms(kind, options.long_faults) + recovery_ms};
  return all;
}

fault_plan::fault_plan(const plan_options& options) : options_(options), dice_(options.seed) {}

std::optional<planned_fault> fault_plan::next() {
  if (round_.empty())
    round_ = kinds_of(options_);
  if (round_.empty())
    return std::nullopt;
  std::swap(round_[dice_() % round_.size()], round_.back());
  planned_fault what;
  what.kind = round_.back();
  round_.pop_back();
  what.whom = victim_of(what.kind);
  what.pause = between(pauses.least_ms, pauses.most_ms);
  what.lasts = duration_of(what.kind);
  what.dice = dice_();
  return what;
}

milliseconds fault_plan::between(int least_ms, int most_ms) {
  const auto span = static_cast<std::uint64_t>(most_ms - least_ms + 1);
  return milliseconds{least_ms + static_cast<int>(dice_() % span)};
}

milliseconds fault_plan::duration_of(fault_kind kind) {
  const bool is_long = is_cut(kind) && options_.long_faults && happens(dice_, long_cuts_percent);
  const auto [least_ms, most_ms] = is_long ? long_cuts : durations_of(kind);
  return most_ms == 0 ? milliseconds{0} : between(least_ms, most_ms);
}

process_name fault_plan::victim_of(fault_kind kind) {
  using enum fault_kind;
  switch (kind) {
  case kill_worker: return any(role::worker);
  case kill_actor: return any(role::actor);
  case kill_coordinator: return {role::coordinator, 0};
  case stop_short:
  case stop_lease:
  case stop_silence:
  case stop_death:
    if (options_.actors > 0 && happens(dice_, 40))
      return any(role::actor);
    if (happens(dice_, 60))
      return any(role::server);
    return happens(dice_, 75) ? any(role::worker) : process_name{role::coordinator, 0};
  default: return any(role::server);
  }
}

process_name fault_plan::any(role of) {
  const auto count = of == role::server   ? options_.servers
                     : of == role::worker ? options_.workers
                                          : options_.actors;
  return {of, static_cast<std::uint32_t>(dice_() % count)};
}

} // namespace troupe::chaos
