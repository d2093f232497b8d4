#include "actors/protocol/coordinator/straggler_detector.hpp"

#include "actors/protocol/mutation.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <utility>

namespace troupe {
namespace {

using seconds_f = std::chrono::duration<double>;

double seconds_of(time_point span) { return std::chrono::duration_cast<seconds_f>(span).count(); }

/// `fields` follow the worker's name.
void notify(straggler_events& events, worker_id worker, straggler_measure measure, event_kind kind,
            std::vector<event_field> fields,
            straggler_event::kind what = straggler_event::kind::measure) {
  fields.insert(fields.begin(), {"member", "worker " + std::to_string(worker.value)});
  events.push_back({what, worker, measure, {kind, std::move(fields)}});
}

event_kind kind_of(straggler_measure measure) {
  switch (measure) {
  case straggler_measure::rebalanced: return event_kind::worker_rebalanced;
  case straggler_measure::demoted: return event_kind::worker_demoted;
  default: return event_kind::worker_warned;
  }
}

/// Requires: `values` is not empty.
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2.0;
}

} // namespace

// -- options ----------------------------------------------------------------------------------

result<void> validate(const straggler_options& options) {
  const auto invalid = [](const char* text) {
    return result<void>{errc::invalid_argument, std::string{"straggler options: "} + text};
  };
  const auto none = std::chrono::milliseconds::zero();
  if (options.window_steps == 0 || options.window_time <= none
      || !(options.window_time_steps >= 0.0))
    return invalid("window_steps and window_time must be positive, window_time_steps at least 0");
  if (options.slow_windows == 0 || options.host_evictions == 0)
    return invalid("slow_windows and host_evictions must be positive");
  if (!(options.slow_ratio >= 1.0) || !(options.slow_deviations >= 0.0))
    return invalid("slow_ratio must be at least 1, slow_deviations at least 0");
  if (options.reporting_min < 3)
    return invalid("reporting_min must be at least 3: of two, neither is the slow one");
  if (options.silence <= none || options.first_step < options.silence)
    return invalid("silence must be positive, first_step at least as long");
  if (!(options.silence_steps >= 1.0) || !(options.stalled_ratio >= 1.0))
    return invalid("silence_steps and stalled_ratio must be at least 1");
  if (!(options.brake_rise > 1.0) || options.long_run <= none)
    return invalid("brake_rise must be above 1, long_run positive");
  for (const auto share : {options.brake_share, options.out_share})
    if (!(share >= 0.0 && share <= 1.0))
      return invalid("brake_share and out_share must be in [0, 1]");
  for (const auto time :
       {options.slow_excess, options.brake_time, options.force_interval, options.recovery,
        options.eviction_interval, options.probation, options.host_memory, options.host_hold})
    if (time < none)
      return invalid("a time is negative");
  if (options.probation_max < options.probation || options.healthy_time <= none)
    return invalid("probation_max must not be below probation, healthy_time must be positive");
  if (options.round <= none || !(options.late_ratio >= 1.0) || options.late_memory <= none)
    return invalid("round and late_memory must be positive, late_ratio at least 1");
  return {};
}

straggler_options hurried(straggler_options options, double speed) {
  for (auto* time :
       {&options.window_time, &options.silence, &options.first_step, &options.long_run,
        &options.brake_time, &options.force_interval, &options.recovery, &options.eviction_interval,
        &options.probation, &options.probation_max, &options.healthy_time, &options.host_memory,
        &options.host_hold, &options.round, &options.late_memory})
    *time = std::chrono::duration_cast<std::chrono::milliseconds>(*time / speed);
  return options;
}

// -- events -----------------------------------------------------------------------------------

void straggler_detector::begin_track(slot& who, time_point now) const {
  who.seen = {};
  who.seen.since = now;
  who.seen.window_since = now;
  who.seen.healthy_since = now;
}

void straggler_detector::joined(worker_id worker, std::string host, time_point now,
                                straggler_events& events) {
  auto& who = slots_[worker];
  who.host = std::move(host);
  who.present = true;
  begin_track(who, now);
  if (who.measure == straggler_measure::evicted)
    return;
  who.measure = straggler_measure::full;
  const auto record = hosts_.find(who.host);
  if (record == hosts_.end() || record->second.held_until <= now || !may_evict())
    return;
  who.measure = straggler_measure::evicted;
  who.evicted_until = record->second.held_until;
  notify(events, worker, who.measure, event_kind::worker_held,
         {{"seconds", seconds_of(who.evicted_until - now)}, {"host", who.host}});
}

void straggler_detector::left(worker_id worker, time_point now) {
  const auto found = slots_.find(worker);
  if (found == slots_.end())
    return;
  auto& who = found->second;
  who.present = false;
  who.left_at = now;
  begin_track(who, now);
  if (who.measure != straggler_measure::evicted)
    who.measure = straggler_measure::full;
}

void straggler_detector::progress(worker_id worker, const worker_progress& done, time_point now) {
  const auto found = slots_.find(worker);
  if (found != slots_.end() && found->second.works())
    measure(found->second.seen, done, now);
}

straggler_measure straggler_detector::measure(worker_id worker) const {
  const auto found = slots_.find(worker);
  return found == slots_.end() ? straggler_measure::full : found->second.measure;
}

void straggler_detector::measure(track& seen, const worker_progress& done, time_point now) const {
  const auto& base = seen.base;
  seen.newest = done;
  if (!base || done.steps < base->steps || done.samples < base->samples
      || done.blocked < base->blocked) {
    seen.base = done;
    seen.since = now;
    return;
  }
  const auto steps = done.steps - base->steps;
  const auto samples = done.samples - base->samples;
  if (steps == 0)
    return;
  const auto busy = seconds_of(now - seen.since - (done.blocked - base->blocked));
  seen.trained = true;
  seen.base = done;
  seen.since = now;
  // After a late round statuses come together, and their times mean nothing. Steps that come when a
  // window is full, before the round that ends it, are left out.
  if (samples == 0 || late_ || seen.window_steps >= options_.window_steps)
    return;
  const auto share = static_cast<double>(samples);
  seen.step_samples_max = std::max(seen.step_samples_max, share / static_cast<double>(steps));
  seen.window.push_back({std::max(busy, 0.0) / share, steps});
  seen.window_steps += steps;
  seen.window_samples += samples;
}

// -- a round ----------------------------------------------------------------------------------

void straggler_detector::tick(time_point now, straggler_events& events) {
  if (round_at_ && now - *round_at_ < options_.round)
    return;
  late_ = round_at_ && now - *round_at_ > options_.round * options_.late_ratio;
  round_at_ = now;
  release(now, events);
  forget(now);
  if (late_)
    return oversleep(now);
  if (late_score_ > 0 && now - late_at_ >= options_.late_memory) {
    --late_score_;
    late_at_ = now;
  }
  for (auto& [worker, who] : slots_)
    if (who.works())
      close_window(who.seen, now);
  const auto all = compare();
  if (all.reporting > 0)
    median_ = all.median;
  find_stalled(all, now, events);
  find_slow(all, now);
  brake(all, now, events);
  act(all, now, events);
}

/// Begins all windows and silences anew: the detector did not run in time, so its measurements
/// since the last round say nothing about workers.
void straggler_detector::oversleep(time_point now) {
  late_score_ = std::min(late_score_ + 1, options_.late_score_max);
  late_at_ = now;
  for (auto& [worker, who] : slots_) {
    auto& seen = who.seen;
    if (seen.base)
      seen.base = seen.newest;
    seen.since = now;
    seen.closed = false;
    begin_window(seen, now);
  }
}

void straggler_detector::begin_window(track& seen, time_point now) {
  seen.window.clear();
  seen.window_steps = seen.window_samples = 0;
  seen.window_since = now;
}

void straggler_detector::close_window(track& seen, time_point now) const {
  const auto time = std::max(seconds_of(options_.window_time),
                             options_.window_time_steps * median_ * seen.step_samples_max);
  seen.closed =
    !seen.window.empty()
    && (seen.window_steps >= options_.window_steps || seconds_of(now - seen.window_since) >= time);
  if (!seen.closed)
    return;
  auto& window = seen.window;
  std::sort(window.begin(), window.end(), [](const auto& a, const auto& b) {
    return a.seconds_per_sample < b.seconds_per_sample;
  });
  std::uint64_t below = 0;
  const auto middle = std::find_if(window.begin(), window.end(), [&](const auto& one) {
    below += one.steps;
    return 2 * below >= seen.window_steps;
  });
  seen.pace = {middle->seconds_per_sample,
               static_cast<double>(seen.window_samples) / static_cast<double>(seen.window_steps)};
  begin_window(seen, now);
}

/// Compares all paces. A stalled worker has no pace; a blocked one keeps its last.
straggler_detector::group straggler_detector::compare() const {
  std::vector<double> paces;
  std::vector<double> samples;
  for (const auto& [worker, who] : slots_)
    if (who.works() && who.seen.pace && !who.seen.stalled) {
      paces.push_back(who.seen.pace->seconds_per_sample);
      samples.push_back(who.seen.pace->samples_per_step);
    }
  if (paces.empty())
    return {};
  group all{paces.size(), median(paces), 0.0, median(std::move(samples))};
  for (auto& one : paces)
    one = std::abs(one - all.median);
  all.deviation = median(std::move(paces));
  return all;
}

double straggler_detector::slow_limit(const group& all) const {
  return std::max(options_.slow_ratio * all.median,
                  all.median + options_.slow_deviations * all.deviation);
}

bool straggler_detector::is_slow(const pace& one, const group& all) const {
  const auto excess = (one.seconds_per_sample - all.median) * all.step_samples;
  return enough(all) && one.seconds_per_sample > slow_limit(all)
         && excess > seconds_of(options_.slow_excess);
}

double straggler_detector::silence_limit(const track& seen) const {
  const auto patience = !seen.trained || seen.step_samples_max == 0.0 || median_ == 0.0
                          ? seconds_of(options_.first_step)
                          : std::max(seconds_of(options_.silence),
                                     options_.silence_steps * median_ * seen.step_samples_max);
  return patience * (1.0 + late_score_);
}

void straggler_detector::find_stalled(const group& all, time_point now, straggler_events& events) {
  for (auto& [worker, who] : slots_) {
    auto& seen = who.seen;
    if (!who.works())
      continue;
    const auto blocked = seen.base ? seen.newest.blocked - seen.base->blocked : time_point{0};
    const auto silent = seconds_of(now - seen.since - blocked);
    const bool stalled = silent > silence_limit(seen);
    seen.stalled_long = silent > options_.stalled_ratio * silence_limit(seen);
    if (stalled && !seen.stalled)
      notify(events, worker, who.measure, event_kind::worker_stalled,
             {{"seconds", silent}, {"figures", describe(seen, all)}},
             straggler_event::kind::stalled);
    if (seen.stalled && !stalled)
      notify(events, worker, who.measure, event_kind::worker_resumed,
             {{"figures", describe(seen, all)}});
    seen.stalled = stalled;
  }
}

void straggler_detector::find_slow(const group& all, time_point now) {
  for (auto& [worker, who] : slots_) {
    auto& seen = who.seen;
    if (!who.works() || !seen.closed)
      continue;
    seen.slow = is_slow(*seen.pace, all);
    seen.slow_windows = seen.slow ? seen.slow_windows + 1 : 0;
    seen.evidence = seen.slow_windows >= options_.slow_windows;
    if (seen.slow)
      seen.slow_at = now;
  }
}

/// Returns why the cluster is slow, rather than some of its workers; empty if it is not.
std::string straggler_detector::systemic(const group& all) const {
  std::size_t compared = 0;
  std::size_t bad = 0;
  for (const auto& [worker, who] : slots_)
    if (who.works() && (who.seen.pace || who.seen.stalled)) {
      ++compared;
      bad += who.seen.stalled || who.seen.slow ? 1 : 0;
    }
  if (static_cast<double>(bad)
      > std::max(1.0, options_.brake_share * static_cast<double>(compared)))
    return std::to_string(bad) + " of " + std::to_string(compared) + " workers are slow or stalled";
  if (enough(all) && long_run_median_ && all.median > options_.brake_rise * *long_run_median_)
    return "a typical step takes " + time_text(all.median * all.step_samples) + " instead of "
           + time_text(*long_run_median_ * all.step_samples);
  return {};
}

void straggler_detector::brake(const group& all, time_point now, straggler_events& events) {
  const auto why = systemic(all);
  if (enough(all)) {
    if (!long_run_median_) {
      long_run_median_ = all.median;
      long_run_since_ = now;
    } else {
      // A plain mean until long_run has passed, then an exponential one. It is updated under the
      // brake too, so that a cluster that stays slow is compared again in the end.
      const auto span = std::min<time_point>(now - long_run_since_, options_.long_run);
      const auto weight = std::min(1.0, seconds_of(now - long_run_at_) / seconds_of(span));
      *long_run_median_ += weight * (all.median - *long_run_median_);
    }
    long_run_at_ = now;
  }
  if (!why.empty()) {
    brake_until_ = now + options_.brake_time;
    if (!std::exchange(braked_, true))
      events.push_back({straggler_event::kind::cluster_slow,
                        std::nullopt,
                        straggler_measure::full,
                        {event_kind::cluster_slow, {{"reason", why}}}});
  } else if (braked_ && now >= brake_until_) {
    braked_ = false;
    events.push_back({straggler_event::kind::cluster_well,
                      std::nullopt,
                      straggler_measure::full,
                      {event_kind::cluster_healthy, {}}});
  }
}

// -- force ------------------------------------------------------------------------------------

void straggler_detector::act(const group& all, time_point now, straggler_events& events) {
  std::optional<worker_id> worst;
  const auto badness = [&](worker_id worker) { // Stalled workers first, then by pace.
    const auto& seen = slots_.at(worker).seen;
    return std::pair{seen.stalled_long, seen.pace ? seen.pace->seconds_per_sample : 0.0};
  };
  for (auto& [worker, who] : slots_) {
    auto& seen = who.seen;
    if (!who.works())
      continue;
    if (seen.stalled || seen.slow)
      seen.healthy_since = now;
    else if (seen.closed)
      restore(worker, who, now, events);
    if (braked_ || !enough(all)) {
      seen.slow_windows = 0;
      seen.evidence = false;
    }
    const bool forceable = seen.evidence && now - seen.forced_at >= options_.force_interval;
    if (forceable && who.measure < std::min(options_.strongest, straggler_measure::demoted)) {
      assert(!late_ && !braked_ && seen.slow && seen.slow_at > seen.forced_at);
      who.measure = static_cast<straggler_measure>(static_cast<int>(who.measure) + 1);
      seen.evidence = false;
      seen.forced_at = now;
      notify(events, worker, who.measure, kind_of(who.measure), {{"figures", describe(seen, all)}});
    } else if ((forceable || (seen.stalled_long && !braked_))
               && (!worst || badness(*worst) < badness(worker))) {
      worst = worker;
    }
  }
  if (worst && may_evict()
      && (!evicted_at_ || now - *evicted_at_ >= options_.eviction_interval
          || mutated(mutation::evicts_at_once)))
    evict(*worst, all, now, events);
}

/// Gives back duties and halves evictions, after a window that was not slow.
void straggler_detector::restore(worker_id worker, slot& who, time_point now,
                                 straggler_events& events) const {
  auto& seen = who.seen;
  if (who.measure != straggler_measure::full && now - seen.slow_at >= options_.recovery) {
    who.measure = straggler_measure::full;
    notify(events, worker, who.measure, event_kind::worker_healthy,
           {{"seconds", seconds_of(now - seen.slow_at)}});
  }
  if (now - seen.healthy_since >= options_.healthy_time) {
    who.evictions /= 2;
    seen.healthy_since = now;
  }
}

std::size_t straggler_detector::working() const {
  return static_cast<std::size_t>(std::count_if(
    slots_.begin(), slots_.end(), [](const auto& entry) { return entry.second.works(); }));
}

/// Returns whether one more working worker may be evicted.
bool straggler_detector::may_evict() const {
  std::size_t known = 0;
  std::size_t out = 0;
  for (const auto& [worker, who] : slots_) {
    known += who.present || who.measure == straggler_measure::evicted ? 1 : 0;
    out += who.measure == straggler_measure::evicted ? 1 : 0;
  }
  // 10 % of 30 must be 3, although 0.1 is not exact in binary.
  const auto share = std::floor(options_.out_share * static_cast<double>(known) + 1e-9);
  return options_.strongest == straggler_measure::evicted
         && (static_cast<double>(out + 1) <= std::max(1.0, share)
             || mutated(mutation::evicts_beyond_cap))
         && working() >= std::size_t{options_.workers_min} + 1;
}

void straggler_detector::evict(worker_id worker, const group& all, time_point now,
                               straggler_events& events) {
  auto& who = slots_.at(worker);
  const std::string reason = who.seen.stalled_long ? "stalled" : "slow";
  const auto numbers = describe(who.seen, all);
  assert(!late_ && !braked_ && (who.seen.evidence || who.seen.stalled_long));
  assert(!evicted_at_ || now - *evicted_at_ >= options_.eviction_interval);
  evicted_at_ = now;
  ++who.evictions;
  who.measure = straggler_measure::evicted;
  who.evicted_until = now
                      + std::min<std::chrono::milliseconds>(options_.probation * who.evictions,
                                                            options_.probation_max);
  begin_track(who, now);
  const bool held = hold_host(who.host, now);
  assert(working() >= options_.workers_min);
  assert(who.evicted_until <= now + std::max(options_.probation_max, options_.host_hold));
  std::vector<event_field> fields{
    {"seconds", seconds_of(who.evicted_until - now)}, {"reason", reason}, {"figures", numbers}};
  if (held)
    fields.push_back({"host", who.host});
  notify(events, worker, who.measure, event_kind::worker_evicted, std::move(fields));
}

/// Notes an eviction. Returns whether it makes the host held back, with all of its workers that are
/// out.
bool straggler_detector::hold_host(const std::string& host, time_point now) {
  if (host.empty())
    return false;
  auto& record = hosts_[host];
  record.evictions.push_back(now);
  while (now - record.evictions.front() > options_.host_memory)
    record.evictions.pop_front();
  if (record.evictions.size() < options_.host_evictions)
    return false;
  record.evictions.clear();
  record.held_until = now + options_.host_hold;
  for (auto& [worker, who] : slots_)
    if (who.measure == straggler_measure::evicted && who.host == host)
      who.evicted_until = std::max(who.evicted_until, record.held_until);
  return true;
}

/// Lets in workers whose time is over. If fewer than workers_min work, lets in others early.
void straggler_detector::release(time_point now, straggler_events& events) {
  for (const auto& [worker, who] : slots_)
    if (who.measure == straggler_measure::evicted && now >= who.evicted_until)
      readmit(worker, "its time is over", now, events);
  while (working() < options_.workers_min) {
    auto next = slots_.end();
    for (auto i = slots_.begin(); i != slots_.end(); ++i) {
      const bool waits = i->second.present && i->second.measure == straggler_measure::evicted;
      if (waits && (next == slots_.end() || i->second.evicted_until < next->second.evicted_until))
        next = i;
    }
    if (next == slots_.end())
      return;
    readmit(next->first, "too few work without it", now, events);
  }
}

void straggler_detector::readmit(worker_id worker, const std::string& why, time_point now,
                                 straggler_events& events) {
  auto& who = slots_.at(worker);
  who.measure = straggler_measure::full;
  if (!who.present)
    who.left_at = now;
  begin_track(who, now);
  notify(events, worker, who.measure, event_kind::worker_readmitted, {{"reason", why}});
}

void straggler_detector::forget(time_point now) {
  std::erase_if(slots_, [&](const auto& entry) {
    const auto& who = entry.second;
    return !who.present && who.measure != straggler_measure::evicted
           && now - who.left_at > options_.host_memory;
  });
  std::erase_if(hosts_, [&](const auto& entry) {
    const auto& record = entry.second;
    return record.held_until <= now
           && (record.evictions.empty() || now - record.evictions.back() > options_.host_memory);
  });
}

std::string straggler_detector::describe(const track& seen, const group& all) const {
  if (!seen.pace || all.reporting == 0)
    return std::to_string(all.reporting) + " workers report a pace";
  return time_text(seen.pace->seconds_per_sample * all.step_samples) + " for "
         + std::to_string(std::llround(all.step_samples)) + " samples, the median of "
         + std::to_string(all.reporting) + " workers is " + time_text(all.median * all.step_samples)
         + ", the limit " + time_text(slow_limit(all) * all.step_samples);
}

} // namespace troupe
