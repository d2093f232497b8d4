// The simulated gossip job: peers, workers, faults, and the end.
#include "actors/protocol/mutation.hpp"
#include "cli/sim/gossip/gossip_world_parts.hpp"

#include <algorithm>
#include <utility>

namespace troupe::sim {
namespace {

constexpr time_point gossip_faults_end = 3s, gossip_quiet_end = 120s;
/// When all ends have heard of faults.
constexpr time_point gossip_faults_heard = gossip_faults_end + 2500ms;
/// In the quiet the copies come as near as this part of their distance at its begin.
constexpr double gossip_approach = 0.02;
/// After the last batch nothing happens, and words that are under way arrive.
constexpr milliseconds gossip_silence = 500ms;

bool in_each_step(std::size_t kind) { return kind == 0; }
bool in_pairwise(std::size_t kind) { return kind == 1; }

} // namespace

const std::vector<minimum<gossip_tally>> gossip_world::minima{
  {"steps", &gossip_tally::steps, 320},
  {"mixes", &gossip_tally::mixes, 420, in_each_step},
  {"changes made", &gossip_tally::halves, 400, in_pairwise},
  {"batches given up", &gossip_tally::rests, 10},
  {"meetings", &gossip_tally::meetings, 25},
  {"peers killed", &gossip_tally::kills, 0.9},
  {"lanes broken", &gossip_tally::broken, 3},
  {"lanes lost at one end", &gossip_tally::renewed, 1.6},
  {"lanes failed", &gossip_tally::failed_connects, 3},
  {"words lost", &gossip_tally::words_lost, 3},
  {"peers paused", &gossip_tally::pauses, 1.3},
  {"peers alone", &gossip_tally::alone, 1.2},
  {"clocks left out", &gossip_tally::jumps, 3, in_each_step},
  {"mixes of one end", &gossip_tally::unmatched, 2.2, in_each_step},
  {"busy", &gossip_tally::busy, 85, in_pairwise},
  {"answers too late", &gossip_tally::released, 0.5, in_pairwise},
  {"changes sent again", &gossip_tally::sent_again, 0.17, in_pairwise},
  {"changes late", &gossip_tally::late_changes, 0.11, in_pairwise},
  {"changes lost", &gossip_tally::changes_lost, 0.03, in_pairwise},
};

gossip_world::gossip_world(std::uint64_t seed, bool no_faults, trace_function trace)
    : lane_world(seed, no_faults, std::move(trace)),
      how_(chance(0.5) ? mixing::each_step : mixing::pairwise), graph_(make_graph()),
      kill_rate_(intensity(2.0)), pause_rate_(intensity(5.0)), idle_rate_(intensity(0.15)),
      seed_(seed), is_dead_(1), is_broken_(1), lowest_(0), highest_(0) {
  set_faults({.break_rate = intensity(16.0),
              .renew_rate = intensity(8.0),
              .connect_failure = intensity(0.5),
              .delay_us_max = pick(200, chance(0.6) ? 2000 : 40'000)});
  for (std::uint32_t i = 0; i < graph_.size(); ++i) {
    peers_.push_back(std::make_unique<peer>());
    peers_.back()->place = i;
    for (const auto other : graph_.neighbours_of[i])
      add_lane(i, other);
  }
  for (std::uint32_t i = 0; i < graph_.size(); ++i)
    start_peer(i);
}

gossip_world::~gossip_world() = default;

neighbour_graph gossip_world::make_graph() {
  const auto peers = static_cast<std::uint32_t>(pick(2, 9));
  switch (pick(0, 4)) {
  case 0: return *neighbour_graph::ring(peers);
  case 1: return *neighbour_graph::exponential(peers);
  case 2: return *neighbour_graph::complete(peers);
  case 3:
    if (auto torus = neighbour_graph::torus(peers))
      return *std::move(torus);
    [[fallthrough]];
  default: break;
  }
  // A tree, and perhaps further edges.
  std::string list;
  for (std::uint32_t i = 1; i < peers; ++i) {
    const auto above = pick(0, i - 1);
    for (std::uint64_t other = 0; other < i; ++other)
      if (other == above || chance(0.2))
        list += std::to_string(i) + " " + std::to_string(other) + "\n";
  }
  return *neighbour_graph::parse_edge_list(list, peers);
}

// -- peers --------------------------------------------------------------------------------------

/// Returns the mean of the living peers, as the collector has it for a successor.
double gossip_world::collected_mean(std::uint32_t left_out) const {
  double sum = 0.0, count = 0.0;
  for (const auto& each : peers_)
    if (each->is_alive && each->place != left_out) {
      sum += each->copy;
      ++count;
    }
  return count == 0.0 ? peers_[left_out]->copy : sum / count;
}

void gossip_world::start_peer(std::uint32_t index) {
  const auto& before = *peers_[index];
  const bool is_first = before.incarnation == 0;
  auto made = std::make_unique<peer>();
  made->place = index;
  made->incarnation = ++incarnations_;
  is_dead_.push_back(false);
  is_broken_.push_back(!is_first);
  const auto& neighbours = graph_.neighbours_of[index];
  made->met.resize(neighbours.size());
  made->step_us = pick(10'000, chance(0.8) ? 60'000 : 400'000);
  if (is_first)
    made->copy = static_cast<double>(pick(0, 200)) - 100.0;
  else
    made->copy = mutated(mutation::successor_keeps_copy) ? before.copy : collected_mean(index);
  if (!is_first)
    check_start(*made);
  given_ += made->copy;
  lowest_ = std::min(lowest_, made->copy);
  highest_ = std::max(highest_, made->copy);
  made->effects = std::make_unique<shell>(*this, *made);
  made->mix = make_mixer({how_, index, neighbours, made->incarnation, seed_});
  made->is_alive = true;
  note("peer " + std::to_string(index) + " starts as " + std::to_string(made->incarnation)
       + " with " + std::to_string(made->copy));
  peers_[index] = std::move(made);
  idle_for_a_while(*peers_[index]);
}

/// Kills a peer.
void gossip_world::kill_peer(peer& victim, bool is_quick) {
  note("peer " + std::to_string(victim.place) + " is killed");
  ++tally_.kills;
  victim.is_alive = false;
  is_dead_[victim.incarnation] = true;
  left_ += victim.copy;
  break_lanes_of(victim, is_quick);
  at(now_ + (chance(0.5) ? pick_ms(10, 200) : pick_ms(100, 2000)),
     [this, index = victim.place] { start_peer(index); });
}

void gossip_world::post_to(const peer& who, time_point when, std::function<void(peer&)> what) {
  lane_world::post_to(who, when,
                      [this, place = who.place, what = std::move(what)] { what(*peers_[place]); });
}

// -- workers ------------------------------------------------------------------------------------

void gossip_world::idle_for_a_while(peer& who) {
  who.worker = peer::worker_state::idle;
  const auto pause = quiet_ ? pick_ms(0, 50) : pick_ms(0, chance(0.5) ? 50 : 1500);
  post_to(who, now_ + pause, [this](peer& at) { begin_work(at); });
}

void gossip_world::begin_work(peer& who) {
  if (!is_stopping_)
    ask(who);
}

void gossip_world::ask(peer& who) {
  who.worker = peer::worker_state::asks;
  who.mix->asked(now_, *who.effects);
}

/// Takes the answer to a request of the worker.
void gossip_world::answered(peer& who) {
  if (who.worker == peer::worker_state::pushes && !who.goes_on)
    return idle_for_a_while(who);
  who.worker = peer::worker_state::computes;
  const auto longest = quiet_ ? std::min<std::uint64_t>(who.step_us, 60'000) : who.step_us;
  post_to(who, now_ + std::chrono::microseconds{pick(5000, longest)},
          [this](peer& at) { work(at); });
}

/// Ends a step of the worker: it pushes, or gives its batch up and asks for another one.
void gossip_world::work(peer& who) {
  if (chance(0.03)) {
    ++tally_.rests;
    return ask(who);
  }
  who.worker = peer::worker_state::pushes;
  who.goes_on = !is_stopping_ && !chance(quiet_ ? 0.02 : 0.02 + idle_rate_);
  who.gradient = quiet_ ? 0.0 : static_cast<double>(pick(0, 16)) - 8.0;
  who.open_steps = 1;
  who.pushed_at = now_;
  who.mix->pushed(++batches_, who.goes_on, now_, *who.effects);
}

// -- faults -------------------------------------------------------------------------------------

void gossip_world::inject_faults() {
  const double seconds = std::chrono::duration<double>(gossip_tick_interval).count();
  auto& one = *peers_[pick(0, peers_.size() - 1)];
  if (one.is_alive && chance(kill_rate_ * seconds))
    kill_peer(one, chance(0.7));
  fail_lanes(seconds);
  auto& other = *peers_[pick(0, peers_.size() - 1)];
  if (other.is_alive && chance(pause_rate_ * seconds))
    pause(other, pick_ms(10, 1000));
}

/// Ends the faults. Gradients are 0 from now on, so the copies approach each other.
void gossip_world::heal() {
  note("quiet from here on");
  quiet_ = true;
  spread_at_quiet_ = spread();
}

/// Returns whether the copies are near each other, and all has been silent for a while; or whether
/// that took too long, which check_end() finds.
bool gossip_world::is_over() {
  const auto is_idle = [](const auto& x) {
    return x->is_alive && x->worker == peer::worker_state::idle;
  };
  if (!is_stopping_ && now_ >= gossip_faults_heard
      && std::ranges::all_of(peers_, [](const auto& x) { return x->is_alive; })
      && spread() <= gossip_approach * (1.0 + spread_at_quiet_)) {
    note("workers begin no batch from here on");
    is_stopping_ = true;
  }
  if (!is_stopping_ || !std::ranges::all_of(peers_, is_idle))
    stopped_at_ = now_;
  return now_ >= stopped_at_ + gossip_silence || now_ >= gossip_quiet_end;
}

void gossip_world::run() {
  for (time_point t = gossip_tick_interval; t < gossip_quiet_end; t += gossip_tick_interval)
    at(t, [this] {
      if (!quiet_)
        inject_faults();
      connect_lanes();
      check_sum();
      check_waits();
      for (const auto& each : peers_)
        if (each->is_alive)
          post_to(*each, now_, [this](peer& at) { at.mix->tick(now_, *at.effects); });
    });
  at(gossip_faults_end, [this] { heal(); });
  while (step() && !is_over()) {
  }
  tally_.events = events();
  static_cast<lane_tally&>(tally_) = lanes_counted();
  check_end();
}

} // namespace troupe::sim
