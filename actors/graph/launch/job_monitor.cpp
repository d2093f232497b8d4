#include "actors/graph/launch/job_monitor.hpp"

#include "actors/graph/launch/end_deadline.hpp"
#include "actors/graph/report/run_result.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace troupe {

namespace {

// Time for processes to end by themselves after the coordinator told them to.
constexpr std::chrono::seconds end_timeout{5};
// Silence after which a job on another host counts as gone: while joining it, and later.
constexpr std::chrono::seconds join_timeout{8};
constexpr std::chrono::seconds silence_timeout{60};
// News repeat every 100 ms; the user is told of a silence of this length.
constexpr std::chrono::seconds unusual_silence{5};
// A coordinator that is silent for longer hangs. Its store may be slow for a while.
constexpr std::chrono::seconds hung_silence{20};
// A launcher with a longer time between two rounds was stopped itself.
constexpr std::chrono::seconds own_pause{2};
// Messages that a coordinator sent before it died have arrived by then.
constexpr std::chrono::milliseconds late_words{500};
// Time for a coordinator to come and write the last checkpoint, if none answers; and, if no batch
// was trained yet, time for one to receive the request.
constexpr std::chrono::seconds stop_silence{5};
constexpr std::chrono::seconds early_stop_silence{2};
// Silence after which a failure ends the job, as no coordinator is there to end it.
constexpr std::chrono::seconds failed_silence{2};
// Most deaths in a report, which should stay small: older deaths have been received.
constexpr std::size_t deaths_max = 64;

} // namespace

job_monitor::job_monitor(watch_options options, time_point now)
    : options_(std::move(options)), started_at_(now), followed_at_(now), silent_since_(now) {}

watch_decision job_monitor::follow(const job_update& news, time_point now) {
  watch_decision what;
  hear(news, now, what);
  look_for_coordinator(news, now, what);
  show_events(news, what);
  if (news.desired_state.phase == job_phase::training && !training_since_)
    training_since_ = now;
  if (!options_.joined)
    ask_evaluator(news.desired_state, what);
  if (news.stop && !ended_at_) {
    ended_at_ = now;
    what.wind_down = true;
    if (news.failed) // The coordinator has the cause; processes here saw only effects.
      failure_ = news.failed;
    else if (news.desired_state.phase != job_phase::stopped)
      fail("the coordinator sent this launcher away while the job went on");
  }
  return what;
}

void job_monitor::hear(const job_update& news, time_point now, watch_decision& what) {
  if (const std::pair latest{news.term, news.sequence}; latest != heard_) {
    heard_ = latest;
    heard_at_ = silent_since_ = now;
    if (std::exchange(told_of_silence_, false))
      what.events.push_back({event_kind::coordinator_answers, {}});
  } else if (heard_at_ && now - *heard_at_ > unusual_silence && !ended_at_ && !told_of_silence_) {
    told_of_silence_ = true;
    what.events.push_back({event_kind::coordinator_silent, {{"address", options_.coordinator}}});
  }
  if (now - std::exchange(followed_at_, now) > own_pause)
    silent_since_ = now;
  if (options_.own_coordinator && !ended_at_ && now - silent_since_ > hung_silence) {
    silent_since_ = now; // The next coordinator has the same time.
    what.kill_coordinator = true;
    what.events.push_back({event_kind::coordinator_hung, {{"member", "coordinator"}}});
  }
  if (news.term >= last_term_ && !news.desired_state.members.empty()) // The final news name none.
    leader_ = news.desired_state.coordinator;
  last_term_ = std::max(last_term_, news.term);
  checkpoint_ = std::max(checkpoint_, news.desired_state.checkpoint);
}

void job_monitor::look_for_coordinator(const job_update& news, time_point now,
                                       watch_decision& what) {
  if (!lost_coordinator_)
    return;
  const auto [term, lost_at] = *lost_coordinator_;
  const bool is_new = news.term > term && news.desired_state.phase != job_phase::gathering;
  // The leader was there all the time: a standby was lost.
  const bool goes_on = news.term == term && heard_at_ == now && now - lost_at > late_words;
  if (!is_new && !goes_on)
    return;
  lost_coordinator_.reset();
  what.coordinator_back = true;
  if (is_new)
    what.events.push_back({event_kind::coordinator_back, {}});
}

void job_monitor::show_events(const job_update& news, watch_decision& what) {
  if (news.term != events_term_) { // A new coordinator counts from 0.
    events_term_ = news.term;
    events_seen_ = 0;
  }
  const auto& events = news.desired_state.events;
  const auto first = news.desired_state.events_total - events.size();
  for (auto i = std::max(first, events_seen_); i < news.desired_state.events_total; ++i)
    what.events.push_back(events[i - first]);
  events_seen_ = std::max(events_seen_, news.desired_state.events_total);
}

void job_monitor::ask_evaluator(const job_status& status, watch_decision& what) {
  const auto epoch = status.batches_done / options_.batches_per_epoch;
  const bool last = status.phase == job_phase::finished;
  const bool due = last || (epoch > evaluated_epoch_ && options_.evaluate_epochs);
  if (evaluating_ || last_evaluated_ || !due)
    return;
  evaluating_ = true;
  evaluating_last_ = last;
  evaluated_epoch_ = epoch;
  what.evaluate = epoch;
}

bool job_monitor::on_evaluated(const std::optional<troupe::failure>& failed) {
  evaluating_ = false;
  if (!evaluating_last_)
    return false;
  last_evaluated_ = true;
  report_.done = true;
  if (failed)
    fail(not_evaluated(*failed));
  return true;
}

watch_decision job_monitor::process_lost(const supervisor::loss& what) {
  if (what.member.role == role::coordinator) {
    lost_coordinator_ = {last_term_, what.detected_at};
  } else {
    report_.deaths.push_back({what.member});
    if (report_.deaths.size() > deaths_max)
      report_.deaths.erase(report_.deaths.begin());
  }
  watch_decision shown;
  const bool is_standby = what.member.role == role::coordinator && !what.deposed && leader_
                          && what.member.index != *leader_;
  const auto name = is_standby ? "standby coordinator " + std::to_string(what.member.index)
                               : to_string(process_of(what.member));
  shown.events.push_back({event_kind::process_ended, {{"member", name}, {"reason", what.how}}});
  return shown;
}

void job_monitor::give_up(const troupe::failure& why, time_point now) {
  if (failure_)
    return;
  failure_ = report_.failed = why;
  gave_up_at_ = now;
}

watch_decision job_monitor::stop(int signal, time_point now) {
  stop_signal_ = signal;
  if (stop_asked_at_ || options_.joined) { // A host that joined waits for no last checkpoint.
    stopped_at_once_ = true;
    fail(options_.joined ? "left the job, which goes on without it" : "stopped at once");
    return {};
  }
  stop_asked_at_ = now;
  report_.stop = true;
  watch_decision what;
  what.events.push_back({event_kind::stopping, {}});
  return what;
}

job_monitor::standing job_monitor::look(time_point now, std::size_t processes) {
  const auto abandon = [this](const std::string& why) {
    fail(why);
    return standing::abandoned;
  };
  if (stopped_at_once_)
    return standing::abandoned;
  if (stop_asked_at_ && !ended_at_ && !gave_up_at_ && !training_since_
      && is_silent_since(*stop_asked_at_, early_stop_silence, now)) {
    stopped_at_once_ = true; // No work is lost by it.
    return abandon("stopped before the training began: no word from the coordinator");
  }
  if (stop_asked_at_ && !ended_at_ && !gave_up_at_
      && is_silent_since(*stop_asked_at_, stop_silence, now))
    return abandon("no last checkpoint, as no coordinator answers; stopped without it");
  if (stop_asked_at_ && now - *stop_asked_at_ > last_checkpoint_max)
    return abandon(no_last_checkpoint);
  // Without a coordinator no message ends the job.
  if (gave_up_at_
      && (now - *gave_up_at_ > end_timeout || is_silent_since(*gave_up_at_, failed_silence, now)))
    return standing::over;
  if (ended_at_)
    return processes == 0 || now - *ended_at_ > end_timeout ? standing::over : standing::running;
  if (options_.joined
      && now - heard_at_.value_or(started_at_) > (heard_at_ ? silence_timeout : join_timeout))
    return abandon("no job answers at " + options_.coordinator);
  return standing::running;
}

/// Returns whether more than `time` has passed since `begin` and since a coordinator's latest news.
bool job_monitor::is_silent_since(time_point begin, std::chrono::seconds time,
                                  time_point now) const {
  return now - std::max(begin, heard_at_.value_or(started_at_)) > time;
}

int job_monitor::exit_status() const {
  if (failure_ && !stopped_at_once_)
    return EXIT_FAILURE;
  const bool is_done = report_.done && !failure_; // A request to stop came too late.
  return stop_signal_ == 0 || is_done ? EXIT_SUCCESS : 128 + stop_signal_;
}

} // namespace troupe
