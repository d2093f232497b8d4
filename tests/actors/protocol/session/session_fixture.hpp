// Plays the backend, the coordinator and the clock of a session.
#pragma once

#include "actors/protocol/session/session.hpp"

#include "doctest/doctest.h"

#include <signal.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

using job_events = std::vector<job_event>;

/// The effects of some events, sorted.
struct session_effects_seen {
  job_events said;
  std::vector<process_name> started, killed;
  std::vector<std::uint64_t> evaluated;
  std::vector<process_loss> lost;
  std::vector<bool> trained; ///< Whether the parameters are to be exported.
  int recovered = 0;
  int results = 0;
  std::optional<end_effect> end;
};

inline session_options default_session() {
  session_options made;
  made.evaluates = evaluated_parameters::epochs;
  made.batches_per_epoch = 10;
  made.coordinator.address = "1.2.3.4:5";
  return made;
}

struct session_fixture {
  explicit session_fixture(session_options options = default_session())
      : session(std::move(options), time_point{0}) {}

  /// Lets the session take an event. Starts succeed unless `start_fails` says otherwise.
  session_effects_seen take(const session_event& what) {
    session_effects_seen seen;
    take(what, seen);
    return seen;
  }
  session_effects_seen follow() {
    ++news.sequence;
    return take(news);
  }
  session_effects_seen follow(job_phase phase) {
    news.desired_state.phase = phase;
    return follow();
  }
  session_effects_seen look() { return take(time_passed{}); }
  session_effects_seen look(time_point at) {
    now = at;
    return look();
  }
  session_effects_seen stop(int signal) { return take(stop_asked{signal}); }
  session_effects_seen end(process_name who, process_end how) {
    how.log = "the log";
    return take(process_ended{who, how});
  }
  session_effects_seen exit(process_name who, int status, std::string words = "") {
    return end(who, {1, process_end::kind::exited, status, std::move(words)});
  }
  session_effects_seen die(process_name who) {
    return end(who, {1, process_end::kind::signalled, SIGKILL});
  }
  session_effects_seen tell(process_name who, word_kind kind, const std::string& text = "") {
    return take(process_word{who, kind, text});
  }
  void tell(const std::string& event) {
    news.desired_state.events.push_back(note_of(event));
    ++news.desired_state.events_total;
  }

  time_point now{0};
  job_update news{{}, 1, false, {}, 0};
  std::optional<failure> start_fails;
  std::uint64_t incarnations = 0;
  session_effects_seen first; ///< The effects of start().
  troupe::session session;

private:
  void take(const session_event& what, session_effects_seen& seen) {
    for (auto& effect : session.take(what, now))
      std::visit([&](auto& each) { carry_out(each, seen); }, effect);
  }

  void carry_out(start_effect& what, session_effects_seen& seen) {
    seen.started.push_back(what.who);
    if (start_fails)
      take(process_not_started{what.who, *start_fails}, seen);
    else
      take(process_started{what.who, {++incarnations}}, seen);
  }
  static void carry_out(kill_effect& what, session_effects_seen& seen) {
    seen.killed.push_back(what.who);
  }
  static void carry_out(evaluate_effect& what, session_effects_seen& seen) {
    seen.evaluated.push_back(what.epoch);
  }
  static void carry_out(trained_effect& what, session_effects_seen& seen) {
    seen.trained.push_back(what.exports);
  }
  static void carry_out(say_effect& what, session_effects_seen& seen) {
    seen.said.push_back(std::move(what.what));
  }
  static void carry_out(lost_effect& what, session_effects_seen& seen) {
    seen.lost.push_back(std::move(what.what));
  }
  static void carry_out(recovered_effect&, session_effects_seen& seen) { ++seen.recovered; }
  void carry_out(results_effect&, session_effects_seen& seen) {
    ++seen.results;
    take(file_written{}, seen);
  }
  static void carry_out(end_effect& what, session_effects_seen& seen) {
    CHECK_FALSE(seen.end);
    seen.end = what;
  }
};

} // namespace troupe::test
