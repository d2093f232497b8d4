#include "actors/protocol/actor/actor_life.hpp"

#include <utility>

namespace troupe {

actor_steps actor_life::end() { return {.ends = !std::exchange(has_ended_, true)}; }

actor_steps actor_life::desired(bool winds_down, bool stops, time_point now) {
  if (winds_down_ && !winds_down && !stops)
    return end(); // A server lost batches, and the job trains again. A successor begins.
  actor_steps made;
  if ((winds_down || stops) && !std::exchange(winds_down_, true) && has_body_) {
    stop_by_ = now + stop_patience;
    made.calls_stop = true;
  }
  is_to_end_ = is_to_end_ || stops;
  if (is_to_end_ && (!has_body_ || has_stopped_))
    made.ends = end().ends;
  return made;
}

actor_steps actor_life::stopped() {
  has_stopped_ = true;
  return {.reports = true, .ends = is_to_end_ && end().ends};
}

actor_steps actor_life::failed(const failure& why) {
  if (!failed_)
    failed_ = why;
  return {.reports = true};
}

actor_steps actor_life::question_failed(const failure& why) {
  if (reaction_to(why.code) == reaction::stop)
    return failed(why);
  owes_question_ = true; // A server is being replaced.
  return {};
}

actor_steps actor_life::tick(time_point now) {
  if (is_to_end_ && winds_down_ && now >= stop_by_) // The program's stop() does not return.
    return end();
  actor_steps made;
  made.has_worked = !failed_ && now - begun_ >= proof;
  made.asks_again = std::exchange(owes_question_, false) && !winds_down_;
  return made;
}

} // namespace troupe
