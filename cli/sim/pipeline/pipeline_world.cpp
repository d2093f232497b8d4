// The simulated pipeline: parts, workers, faults, and the end.
#include "cli/sim/pipeline/pipeline_world_parts.hpp"

#include <algorithm>
#include <utility>

namespace troupe::sim {
namespace {

constexpr time_point pipeline_faults_end = 2s, pipeline_quiet_end = 60s;
/// When all ends have heard of faults.
constexpr time_point pipeline_faults_heard = pipeline_faults_end + 2500ms;
/// After the last batch, words that are under way still arrive.
constexpr milliseconds pipeline_silence = 200ms;
/// Batches that each line computes in the quiet, besides those that are open.
constexpr std::uint32_t pipeline_quiet_batches = 2;

bool in_one_f_one_b(std::size_t kind) { return kind == 1; }

} // namespace

const std::vector<minimum<pipeline_tally>> pipeline_world::minima{
  {"batches applied", &pipeline_tally::batches, 18},
  {"micro-batches", &pipeline_tally::micros, 115},
  {"attempts", &pipeline_tally::attempts, 20},
  {"attempts broken", &pipeline_tally::ended, 1.9},
  {"parts killed", &pipeline_tally::kills, 1.1},
  {"first parts killed", &pipeline_tally::first_kills, 0.38},
  {"lanes broken", &pipeline_tally::broken, 1.7},
  {"lanes lost at one end", &pipeline_tally::renewed, 1.9},
  {"lanes failed", &pipeline_tally::failed_connects, 1.2},
  {"words lost", &pipeline_tally::words_lost, 2.2},
  {"parts paused", &pipeline_tally::pauses, 1.1},
  {"batches taken away", &pipeline_tally::taken_away, 1.5},
  {"batches not applied", &pipeline_tally::not_applied, 0.28},
  {"pulls failed", &pipeline_tally::failed_pulls, 2.1},
  {"pushes failed", &pipeline_tally::failed_pushes, 1.3},
  {"duplicates", &pipeline_tally::duplicates, 2.8},
  {"requests fenced", &pipeline_tally::fenced, 0.003},
  {"requests not listed", &pipeline_tally::not_listed, 1.3},
  {"words of old attempts", &pipeline_tally::old_words, 0.03},
  {"results of old attempts", &pipeline_tally::old_results, 1},
  {"bounds met", &pipeline_tally::bounds_met, 140, in_one_f_one_b},
};

pipeline_world::pipeline_world(std::uint64_t seed, bool no_faults, trace_function trace)
    : lane_world(seed, no_faults, std::move(trace)),
      schedule_{.order = chance(0.5) ? micro_order::fill_drain : micro_order::one_f_one_b,
                .ahead = static_cast<std::uint32_t>(pick(0, 2))},
      parts_(static_cast<std::uint32_t>(pick(2, 4))), kill_rate_(intensity(4.0)),
      pause_rate_(intensity(4.0)), take_rate_(intensity(8.0)), request_failure_(intensity(0.2)),
      request_us_max_(pick(200, chance(0.6) ? 2000 : 40'000)), micros_max_(pick(1, 6)),
      lines_(pick(1, 2)), tables_(parts_) {
  set_faults({.break_rate = intensity(8.0),
              .renew_rate = intensity(8.0),
              .connect_failure = intensity(0.5),
              .delay_us_max = request_us_max_});
  const auto places = static_cast<std::uint32_t>(lines_.size()) * parts_;
  for (std::uint32_t i = 0; i < places; ++i) {
    all_.push_back(std::make_unique<part>());
    if ((i + 1) % parts_ != 0) {
      add_lane(i, i + 1);
      add_lane(i + 1, i);
    }
  }
  for (std::uint32_t i = 0; i < places; ++i)
    start_part(i);
}

pipeline_world::~pipeline_world() = default;

// -- parts --------------------------------------------------------------------------------------

void pipeline_world::start_part(std::uint32_t where) {
  auto made = std::make_unique<part>();
  made->place = where;
  made->line = where / parts_;
  made->index = where % parts_;
  made->incarnation = incarnation_of(++starts_);
  made->compute_us = pick(100, chance(0.8) ? 4000 : 40'000);
  made->effects = std::make_unique<shell>(*this, *made);
  made->flow =
    std::make_unique<part_flow>(part_setup{made->index, parts_, schedule_, made->incarnation});
  made->is_alive = true;
  note("part " + std::to_string(where) + " starts as " + std::to_string(made->incarnation));
  all_[where] = std::move(made);
  if (!all_[where]->is_first())
    return;
  idle_for_a_while(*all_[where]);
  list(all_[where]->line, all_[where]->incarnation);
}

/// Kills a part.
void pipeline_world::kill_part(part& victim, bool is_quick) {
  note("part " + std::to_string(victim.place) + " is killed");
  ++tally_.kills;
  victim.is_alive = false;
  if (victim.is_first()) { // The coordinator gives its batches out again.
    ++tally_.first_kills;
    auto& leased = lines_[victim.line].leased;
    open_.insert(open_.end(), leased.begin(), leased.end());
    leased.clear();
  }
  break_lanes_of(victim, is_quick);
  at(now_ + (chance(0.5) ? pick_ms(5, 50) : pick_ms(50, 1000)),
     [this, place = victim.place] { start_part(place); });
}

void pipeline_world::post_to(const part& who, time_point when, std::function<void(part&)> what) {
  lane_world::post_to(who, when,
                      [this, place = who.place, what = std::move(what)] { what(*all_[place]); });
}

// -- workers ------------------------------------------------------------------------------------

void pipeline_world::idle_for_a_while(part& who) {
  who.worker = part::worker_state::idle;
  const auto pause = quiet_ ? pick_ms(1, 20) : pick_ms(0, chance(0.9) ? 5 : 300);
  post_to(who, now_ + pause, [this](part& at) { begin_work(at); });
}

/// Takes a lease if the worker has none, and begins with its first batch.
void pipeline_world::begin_work(part& who) {
  auto& line = lines_[who.line];
  if (line.leased.empty()) {
    for (auto wanted = pick(1, 3); wanted > 0 && !open_.empty(); --wanted) {
      line.leased.push_back(open_.front());
      open_.pop_front();
    }
    if (line.leased.empty() && (!quiet_ || line.quiet_batches > 0)) {
      line.quiet_batches -= quiet_ ? 1 : 0;
      line.leased.push_back(++batches_);
    }
  }
  if (line.leased.empty())
    return idle_for_a_while(who);
  who.batch = line.leased.front();
  pull_for(who);
}

void pipeline_world::pull_for(part& who) {
  who.worker = part::worker_state::pulls;
  ask(who, {who.line, 0, who.incarnation, {who.incarnation, ++who.work}, who.batch});
}

/// Pushes the sum of the first part, after those of the others.
void pipeline_world::push_first(part& who) {
  if (!quiet_ && chance(0.02)) {
    ++tally_.not_applied; // History was rolled back, but for the other tables.
    who.worker = part::worker_state::pulls;
    who.forget();
    return post_to(who, now_, [this](part& at) { pull_for(at); });
  }
  who.worker = part::worker_state::pushes;
  who.pushed_sum = who.sum;
  who.forget();
  ask(
    who,
    {who.line, 0, who.incarnation, {who.incarnation, ++who.work}, who.batch, true, who.pushed_sum});
}

/// Takes an answer to the worker.
void pipeline_world::worker_heard(part& who, const request& what, bool is_good,
                                  std::uint64_t value) {
  if (what.of.number != who.work)
    return;
  if (!is_good) // The worker asks again at once: it has waited.
    return ask(who, what);
  if (!what.is_push) {
    who.value = value;
    who.worker = part::worker_state::flows;
    const auto micros = static_cast<std::uint32_t>(pick(1, micros_max_));
    ++tally_.attempts;
    return who.flow->began({batch_id{who.batch}, who.work, generation_id{1}, micros}, *who.effects);
  }
  note("batch " + std::to_string(who.batch) + " is applied");
  ++tally_.batches;
  applied_.insert(who.batch);
  lines_[who.line].leased.pop_front();
  idle_for_a_while(who);
}

/// Takes the lease away from a worker that is at a batch.
void pipeline_world::take_away(part& who) {
  if (who.worker != part::worker_state::flows)
    return;
  ++tally_.taken_away;
  auto& leased = lines_[who.line].leased;
  open_.insert(open_.end(), leased.begin(), leased.end());
  leased.clear();
  who.flow->dropped(*who.effects);
  idle_for_a_while(who);
}

// -- faults -------------------------------------------------------------------------------------

void pipeline_world::inject_faults() {
  const double seconds = std::chrono::duration<double>(pipeline_tick_interval).count();
  auto& one = *all_[pick(0, all_.size() - 1)];
  if (one.is_alive && chance(kill_rate_ * seconds))
    kill_part(one, chance(0.7));
  fail_lanes(seconds);
  auto& other = *all_[pick(0, all_.size() - 1)];
  if (other.is_alive && chance(pause_rate_ * seconds))
    pause(other, pick_ms(5, chance(0.7) ? 100 : 1000));
}

/// Takes leases away, also at the begin of the quiet, so that a line may drop its last batch.
void pipeline_world::take_leases() {
  const double seconds = std::chrono::duration<double>(pipeline_tick_interval).count();
  const auto line = static_cast<std::uint32_t>(pick(0, lines_.size() - 1));
  auto& first = *all_[line * parts_];
  if (first.is_alive && chance(take_rate_ * seconds))
    post_to(first, now_, [this](part& at) { take_away(at); });
}

/// Ends the faults. Each line computes a few batches more.
void pipeline_world::heal() {
  note("quiet from here on");
  quiet_ = true;
  for (auto& each : lines_)
    each.quiet_batches = pipeline_quiet_batches;
}

/// Returns whether all batches are applied, and all has been silent for a while.
bool pipeline_world::is_over() {
  const bool has_work = !quiet_ || !open_.empty() || std::ranges::any_of(lines_, [](const auto& x) {
    return !x.leased.empty() || x.quiet_batches > 0;
  });
  const bool is_whole = std::ranges::all_of(all_, [](const auto& x) {
    return x->is_alive && x->flow->is_whole() && x->flow->present() == nullptr;
  });
  if (has_work || !is_whole || now_ < pipeline_faults_heard)
    ended_at_ = now_;
  return now_ >= ended_at_ + pipeline_silence;
}

void pipeline_world::run() {
  for (time_point t = pipeline_tick_interval; t < pipeline_quiet_end; t += pipeline_tick_interval)
    at(t, [this] {
      if (!quiet_)
        inject_faults();
      if (now_ < pipeline_faults_heard)
        take_leases();
      connect_lanes();
      for (const auto& each : all_)
        if (each->is_alive)
          post_to(*each, now_, [this](part& at) { at.flow->tick(now_, *at.effects); });
    });
  at(pipeline_faults_end, [this] { heal(); });
  while (now_ < pipeline_quiet_end && step() && !is_over()) {
  }
  tally_.events = events();
  static_cast<lane_tally&>(tally_) = lanes_counted();
  check_end();
}

} // namespace troupe::sim
