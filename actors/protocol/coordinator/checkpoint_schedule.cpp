#include "actors/protocol/coordinator/checkpoint_schedule.hpp"

#include "actors/protocol/mutation.hpp"

#include <algorithm>
#include <cassert>

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// The pace is sampled over this time, and clocks are chosen as far ahead. A desired state takes a
/// few ms to arrive.
constexpr auto sample_time = 500ms;
/// A cut that is not complete by then never will be: a server's disk hangs, or a clock is stalled.
constexpr auto cut_timeout = 60s;
constexpr std::uint64_t margin_min = 2;

} // namespace

checkpoint_schedule::checkpoint_schedule(const job_spec& job, checkpoint_options options,
                                         std::uint64_t last_number)
    : options_(options), chains_(job.shard_count()), slots_(job.workers),
      by_clocks_(goes_by_clocks(job)), clocks_total_(bsp_clock_count(job)), number_(last_number) {}

void checkpoint_schedule::observe(const position& where, time_point now) {
  if (now - sample_at_ < sample_time && where.clock >= sample_clock_)
    return;
  pace_ = where.clock >= sample_clock_ ? where.clock - sample_clock_ : 0;
  sample_clock_ = where.clock;
  sample_at_ = now;
}

void checkpoint_schedule::restart(const position& where, time_point now) {
  at_ = where;
  since_ = now;
  sample_clock_ = where.clock;
  sample_at_ = now;
}

std::uint64_t checkpoint_schedule::margin() const {
  return std::max(pace_, margin_min) << std::min(failures_, 6u);
}

std::uint64_t checkpoint_schedule::target(std::uint64_t clock, bool aligned) const {
  auto chosen = clock + margin();
  if (aligned && options_.clocks > 0) {
    chosen = std::max(chosen, at_.clock + options_.clocks);
    chosen = (chosen + options_.clocks - 1) / options_.clocks * options_.clocks;
  }
  return std::min(chosen, clocks_total_);
}

bool checkpoint_schedule::due(const position& where, time_point now) const {
  if (stage_ != stage::idle || where.settled == at_.settled)
    return false;
  if (options_.clocks == 0)
    return options_.interval > 0ms && now - since_ >= options_.interval;
  if (by_clocks_) // Not much earlier than needed, so that the timeout does not count slow clocks.
    return target(where.clock, true) - where.clock <= 2 * margin();
  return where.settled >= at_.settled + options_.clocks * slots_;
}

void checkpoint_schedule::begin(const position& where, time_point now, bool aligned) {
  assert(stage_ == stage::idle);
  stage_ = stage::cutting;
  ++number_;
  parts_.clear();
  since_ = now;
  clock_ = by_clocks_ ? target(where.clock, aligned) : 0;
  at_ = {where.settled, clock_};
}

bool checkpoint_schedule::overdue(time_point now) const {
  return stage_ == stage::cutting && now - since_ > cut_timeout;
}

bool checkpoint_schedule::add(const checkpoint_part& part) {
  if (stage_ != stage::cutting
      || (part.checkpoint != number_ && !mutated(mutation::any_part_taken)))
    return false;
  parts_[part.shard] = part;
  if (parts_.size() + (mutated(mutation::committed_without_one) ? 1 : 0) < chains_)
    return false;
  assert(parts_.size() == chains_ && std::ranges::all_of(parts_, [&](const auto& x) {
           return x.second.checkpoint == number_;
         }));
  stage_ = stage::committing;
  return true;
}

std::vector<checkpoint_part> checkpoint_schedule::parts() const {
  std::vector<checkpoint_part> all;
  for (const auto& [server, part] : parts_)
    all.push_back(part);
  return all;
}

void checkpoint_schedule::skip_to(std::uint64_t number) {
  if (stage_ == stage::idle)
    number_ = std::max(number_, number);
}

void checkpoint_schedule::abandon(time_point now) {
  stage_ = stage::idle;
  since_ = now;
  parts_.clear();
}

void checkpoint_schedule::fail(time_point now) {
  abandon(now);
  ++failures_;
}

void checkpoint_schedule::committed(time_point now) {
  abandon(now);
  failures_ = 0;
}

} // namespace troupe
