#include "actors/protocol/session/coordinator_watch.hpp"

#include "actors/protocol/mutation.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

namespace troupe {

namespace {

// News repeat every 100 ms; the user is told of a silence of this length.
constexpr std::chrono::seconds unusual_silence{5};
// A coordinator that is silent for longer hangs. Its store may be slow for a while.
constexpr std::chrono::seconds hung_silence{20};
// A launcher with a longer time between two rounds was stopped itself.
constexpr std::chrono::seconds own_pause{2};
// Messages that a coordinator sent before it died have arrived by then.
constexpr std::chrono::milliseconds late_words{500};

} // namespace

coordinator_watch::coordinator_watch(coordinator_watch_options options, time_point now)
    : options_(std::move(options)), started_at_(now), followed_at_(now), silent_since_(now) {}

coordinator_watch::findings coordinator_watch::follow(const job_update& news, time_point now) {
  findings what;
  hear(news, now, what);
  look_for_successor(news, now, what);
  take_events(news, what);
  return what;
}

void coordinator_watch::hear(const job_update& news, time_point now, findings& what) {
  if (const std::pair latest{news.term, news.sequence}; latest != heard_) {
    heard_ = latest;
    heard_at_ = silent_since_ = now;
    if (std::exchange(told_of_silence_, false))
      what.events.push_back({event_kind::coordinator_answers, {}});
  } else if (heard_at_ && now - *heard_at_ > unusual_silence && !has_ended_ && !told_of_silence_) {
    told_of_silence_ = true;
    what.events.push_back({event_kind::coordinator_silent, {{"address", options_.address}}});
  }
  const auto paused = now - std::exchange(followed_at_, now);
  if (paused > own_pause)
    silent_since_ = now;
  const auto patience = mutated(mutation::silent_called_hung) ? own_pause : hung_silence;
  if (options_.is_only_one && !has_ended_ && now - silent_since_ > patience) {
    silent_since_ = now; // The next coordinator has the same time.
    what.is_hung = true;
    assert(paused <= own_pause);
    what.events.push_back({event_kind::coordinator_hung, {{"member", "coordinator"}}});
  }
  if (news.term >= last_term_ && !news.desired_state.members.empty()) // The final news name none.
    leader_ = news.desired_state.coordinator;
  last_term_ = std::max(last_term_, news.term);
}

void coordinator_watch::look_for_successor(const job_update& news, time_point now, findings& what) {
  if (!lost_)
    return;
  const auto [term, lost_at] = *lost_;
  const bool is_new = news.term > term && news.desired_state.phase != job_phase::gathering;
  // The leader was there all the time: a standby was lost.
  const bool goes_on = news.term == term && heard_at_ == now && now - lost_at > late_words;
  if (!is_new && !goes_on)
    return;
  lost_.reset();
  what.is_back = true;
  if (is_new)
    what.events.push_back({event_kind::coordinator_back, {}});
}

void coordinator_watch::take_events(const job_update& news, findings& what) {
  // A new coordinator counts from 0.
  if (news.term != events_term_ && !mutated(mutation::new_events_hidden)) {
    events_term_ = news.term;
    events_seen_ = 0;
  }
  const auto& events = news.desired_state.events;
  const auto total = news.desired_state.events_total;
  assert(events.size() <= total);
  const auto first = total - events.size();
  for (auto i = std::max(first, events_seen_); i < total; ++i)
    what.events.push_back(events[i - first]);
  if (!mutated(mutation::events_shown_again))
    events_seen_ = std::max(events_seen_, total);
}

bool coordinator_watch::is_silent_since(time_point begin, time_point time, time_point now) const {
  return now - std::max(begin, heard_at_.value_or(started_at_)) > time;
}

} // namespace troupe
