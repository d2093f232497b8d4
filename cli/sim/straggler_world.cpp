#include "cli/sim/straggler_world.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe::sim {
namespace {

time_point after(double seconds) {
  return std::chrono::duration_cast<time_point>(std::chrono::duration<double>(seconds));
}

double seconds(time_point span) { return std::chrono::duration<double>(span).count(); }

} // namespace

void straggler_tally::add(const straggler_tally& other) {
  worker_hours += other.worker_hours;
  steps += other.steps;
  stragglers += other.stragglers;
  healthy_out += other.healthy_out;
  stragglers_out += other.stragglers_out;
  forced += other.forced;
  stalled += other.stalled;
  cluster_slow += other.cluster_slow;
  sleeps += other.sleeps;
  over_budget += other.over_budget;
  out_max = std::max(out_max, other.out_max);
  out_after_max = std::max(out_after_max, other.out_after_max);
  never_out += other.never_out;
  evictions.insert(evictions.end(), other.evictions.begin(), other.evictions.end());
}

straggler_world::straggler_world(fleet_options options, std::uint64_t seed)
    : options_(options), random_(seed), detector_(options.detector), members_(options.workers) {
  for (auto& one : members_)
    one.speed = std::exp(0.05 * normal_(random_)); // No two machines are equal.
}

straggler_tally straggler_world::run() {
  for (std::uint32_t i = 0; i < options_.workers; ++i)
    join(i, 0s);
  auto round = 1000ms + after(uniform(0.0, 0.1));
  time_point sleeps_at = options_.detector_sleeps ? after(uniform(60, 180)) : options_.length;
  while (round < options_.length) {
    work_until(round);
    if (round >= sleeps_at) {
      wake(round);
      sleeps_at = round + after(uniform(60, 180));
      round += after(uniform(3, 15)); // Reports that come meanwhile are handled then.
      asleep_ = true;
      ++tally_.sleeps;
      continue;
    }
    if (asleep_)
      wake(round);
    else
      tick(round);
    round += 1000ms + after(uniform(0.0, 0.02));
  }
  tally_.worker_hours = options_.workers * seconds(options_.length) / 3600.0;
  for (const auto& one : members_) {
    tally_.stragglers += is_straggler(one) ? 1 : 0;
    tally_.never_out += is_straggler(one) && !one.was_out ? 1 : 0;
  }
  return tally_;
}

void straggler_world::join(std::uint32_t i, time_point now) {
  detector_.joined({i}, "host" + std::to_string(i / 2), now, detected_);
  members_[i].done = {};
  if (detector_.measure({i}) != straggler_measure::evicted)
    begin(i, now);
}

void straggler_world::begin(std::uint32_t i, time_point now) {
  auto& one = members_[i];
  one.working = true;
  one.computing = false;
  one.wait = 0.0;
  events_.push({now + after(uniform(0.0, 5.0)), i, ++one.life, false});
}

void straggler_world::work_until(time_point end) {
  while (!events_.empty() && events_.top().at < end) {
    const auto next = events_.top();
    events_.pop();
    if (next.joins)
      join(next.worker, next.at);
    else if (next.life == members_[next.worker].life)
      step(next.worker, next.at);
  }
}

void straggler_world::step(std::uint32_t i, time_point now) {
  auto& one = members_[i];
  const auto& how = one.habit;
  if (std::exchange(one.computing, false)) {
    ++tally_.steps;
    ++one.done.steps;
    one.done.samples += static_cast<std::uint64_t>(std::lround(64 * how.data));
    report(i, now);
    if (how.blocked > 0.0 && now >= how.from)
      one.wait = -how.blocked * std::log(uniform(1e-9, 1.0));
  }
  double time = 0.0;
  if (one.wait > 0.0) {
    time = std::min(one.wait, 1.0);
    one.wait -= time;
    one.done.blocked += std::chrono::microseconds(std::llround(time * 1e6));
    report(i, now); // The wait counts a little early, by a second at most.
  } else {
    const bool slow =
      now >= how.from && (how.on_off == 0s || (now - how.from) / how.on_off % 2 == 0);
    time = options_.step * one.speed * how.data * (slow ? how.slowness : 1.0)
           * std::exp(options_.jitter * normal_(random_));
    if (uniform(0.0, 1.0) < options_.pauses)
      time += uniform(2.0, 8.0);
    one.computing = true;
  }
  events_.push({now + after(time), i, one.life, false});
}

void straggler_world::report(std::uint32_t i, time_point now) {
  if (asleep_)
    backlog_.push_back({i, members_[i].done});
  else
    detector_.progress({i}, members_[i].done, now);
}

void straggler_world::wake(time_point now) {
  asleep_ = false;
  const auto turn =
    static_cast<std::size_t>(uniform(0.0, static_cast<double>(backlog_.size()) + 0.999));
  for (std::size_t i = 0; i <= backlog_.size(); ++i) {
    if (i == turn)
      tick(now);
    if (i < backlog_.size() && members_[backlog_[i].worker].working)
      detector_.progress({backlog_[i].worker}, backlog_[i].done, now);
  }
  backlog_.clear();
}

void straggler_world::tick(time_point now) {
  detector_.tick(now, detected_);
  for (const auto& one : detected_)
    reconcile(one, now);
  detected_.clear();
  const auto cap = std::max<std::size_t>(1, options_.workers / 10);
  if (out_.size() > cap || options_.workers - out_.size() < options_.detector.workers_min)
    ++tally_.over_budget;
  tally_.out_max = std::max(tally_.out_max, out_.size());
}

void straggler_world::reconcile(const straggler_event& detected, time_point now) {
  using kind = straggler_event::kind;
  tally_.stalled += detected.what == kind::stalled ? 1 : 0;
  tally_.cluster_slow += detected.what == kind::cluster_slow ? 1 : 0;
  if (detected.what != kind::measure)
    return;
  const auto i = detected.worker->value;
  auto& one = members_[i];
  if (!is_straggler(one) && detected.measure != straggler_measure::full)
    ++tally_.forced;
  if (detected.measure == straggler_measure::full && out_.erase(i) == 1 && !one.working
      && one.life > 0)
    begin(i, now);
  if (detected.measure != straggler_measure::evicted)
    return;
  out_.insert(i);
  if (!one.working) // It was not at work: its host holds it back.
    return;
  ++(is_straggler(one) ? tally_.stragglers_out : tally_.healthy_out);
  if (evicted_at_ > 0s && now - evicted_at_ < 10s)
    ++tally_.over_budget;
  evicted_at_ = now;
  tally_.evictions.push_back({{i}, now, is_straggler(one), one.habit.from});
  if (is_straggler(one) && !std::exchange(one.was_out, true))
    tally_.out_after_max = std::max(tally_.out_after_max, seconds(now - one.habit.from));
  one.working = false;
  ++one.life;
  detector_.left({i}, now);
  events_.push({now + after(uniform(1.0, 5.0)), i, 0, true});
}

} // namespace troupe::sim
