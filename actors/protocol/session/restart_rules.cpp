#include "actors/protocol/session/restart_rules.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <cassert>

namespace troupe {

void restart_rules::started(time_point now) {
  started_at_ = now;
  has_worked_ = false;
}

restart_decision restart_rules::ended(end_cause why, time_point now) {
  if (why == end_cause::killed || why == end_cause::deposed)
    return {};
  if (why == end_cause::dismissed)
    return dismissed(now);
  assert(why == end_cause::sigkill || why == end_cause::crash);
  quick_dismissals_ = 0;
  if (why == end_cause::crash)
    crashes_.push_back(now);
  std::erase_if(crashes_, [&](time_point at) { return now - at > limits_.window; });
  restart_decision next;
  if (has_worked_)
    without_work_ = 0;
  else
    next = without_work();
  if (!next.too_often && std::ssize(crashes_) >= limits_.crashes_max)
    next.too_often = fmt::format("{} times within {} s", crashes_.size(), limits_.window.count());
  return next;
}

restart_decision restart_rules::dismissed(time_point now) {
  quick_dismissals_ = now - started_at_ < pauses_.quick ? quick_dismissals_ + 1 : 0;
  if (quick_dismissals_ < quick_dismissals_max)
    return {.pause = pauses_.dismissed};
  return {.too_often = fmt::format("{} times at once, as it was told to", quick_dismissals_)};
}

restart_decision restart_rules::start_failed() { return without_work(); }

restart_decision restart_rules::without_work() {
  assert(without_work_ < limits_.crashes_max);
  const auto pause = pauses_.min * (1 << std::min(without_work_, 16));
  if (++without_work_ < limits_.crashes_max)
    return {.pause = std::min(pause, pauses_.max)};
  return {.too_often = fmt::format("{} times in a row before it had done any work", without_work_)};
}

} // namespace troupe
