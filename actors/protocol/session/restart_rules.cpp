#include "actors/protocol/session/restart_rules.hpp"

#include "actors/protocol/mutation.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <cassert>

namespace troupe {

namespace {

/// Returns the limit itself, or one beside it while a mistake is planted.
int limit_of(int count, mutation less, mutation more) {
  return count - (mutated(less) ? 1 : 0) + (mutated(more) ? 1 : 0);
}

} // namespace

void restart_rules::started(time_point now) {
  started_at_ = now;
  has_worked_ = has_worked_ && mutated(mutation::old_work_counts);
}

restart_decision restart_rules::ended(end_cause why, time_point now) {
  if (why == end_cause::killed || why == end_cause::deposed)
    return {};
  if (why == end_cause::dismissed)
    return dismissed(now);
  assert(why == end_cause::sigkill || why == end_cause::crash);
  quick_dismissals_ = 0;
  if (why == end_cause::crash || mutated(mutation::kills_are_crashes))
    crashes_.push_back(now);
  std::erase_if(crashes_, [&](time_point at) {
    return now - at > limits_.window && !mutated(mutation::window_ignored);
  });
  restart_decision next;
  if (!has_worked_)
    next = without_work();
  else if (!mutated(mutation::work_ends_no_row))
    without_work_ = 0;
  const auto most =
    limit_of(limits_.crashes_max, mutation::crash_too_few, mutation::crash_too_many);
  if (!next.too_often && std::ssize(crashes_) >= most)
    next.too_often = fmt::format("{} times within {} s", crashes_.size(), limits_.window.count());
  return next;
}

restart_decision restart_rules::dismissed(time_point now) {
  quick_dismissals_ = now - started_at_ < pauses_.quick ? quick_dismissals_ + 1 : 0;
  if (quick_dismissals_ < quick_dismissals_max || mutated(mutation::quick_dismissals_forgotten))
    return {.pause = pauses_.dismissed};
  return {.too_often = fmt::format("{} times at once, as it was told to", quick_dismissals_)};
}

restart_decision restart_rules::start_failed() { return without_work(); }

restart_decision restart_rules::without_work() {
  assert(without_work_ < limits_.crashes_max);
  const auto doublings = mutated(mutation::pause_does_not_grow) ? 0 : std::min(without_work_, 16);
  const auto pause = pauses_.min * (1 << doublings);
  if (++without_work_
      < limit_of(limits_.crashes_max, mutation::row_too_short, mutation::row_too_long))
    return {.pause = std::min(pause, pauses_.max)};
  return {.too_often = fmt::format("{} times in a row before it had done any work", without_work_)};
}

} // namespace troupe
