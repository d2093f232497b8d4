// Checks of the launcher: what its session starts, kills, reports and shows, and how it ends.
#include "cli/sim/job_world_parts.hpp"

namespace troupe::sim {
namespace {

/// The most deaths in a report: session.cpp has the number.
constexpr std::ptrdiff_t deaths_told = 64;
/// Longer than any pause before a restart.
constexpr time_point restart_pause_max = 1000ms;
/// Times of session.cpp and coordinator_watch.cpp.
constexpr time_point end_patience = 5s, coordinator_patience = 20s;
/// If the job ends so long after the faults, each awake process is told to end.
constexpr time_point all_told = 2s;

} // namespace

/// Tells the oracle of restarts of an event that the session takes now.
void job_world::expect(launcher& by, const session_event& what) {
  const auto tell = [&](const auto& each, process_name who) {
    by.restarts.take(each, by.may_end(who), now_);
  };
  if (const auto* const started = std::get_if<process_started>(&what))
    tell(*started, started->who);
  else if (const auto* const failed = std::get_if<process_not_started>(&what))
    tell(*failed, failed->who);
  else if (const auto* const end = std::get_if<process_ended>(&what))
    tell(*end, end->who);
  else if (const auto* const word = std::get_if<process_word>(&what))
    tell(*word, word->from);
  else if (std::holds_alternative<job_update>(what))
    by.restarts.let_go([&](process_name who) { return by.may_end(who); });
}

/// Checks the starts, the lines and the failure that the limits of restarts ask for.
void job_world::check_limits(launcher& by) {
  if (by.sent_away || by.is_over)
    return;
  by.restarts.check(by.decides, by.said, now_);
  tally_.gives_up += by.restarts.has_failed() && !std::exchange(by.has_given_up, true) ? 1 : 0;
  tally_.stays_out += by.restarts.left_out() - std::exchange(by.left_out, by.restarts.left_out());
}

void job_world::check_start(launcher& by, process_name who) const {
  require(!by.sent_away && !by.is_over, "starts: a process is started after the job has ended");
  require(!by.starting.contains(who) && !(is_here(who) && runs(who)),
          "starts: a process is started that runs");
  require(by.wants(who), "starts: a server is started that leaves the job");
  by.restarts.check_start(who, now_);
}

/// Checks that each process of the host that ended is started again, and each added server.
void job_world::check_restarts(launcher& by) const {
  for (auto& [who, since] : by.down) {
    if (by.may_end(who) || by.decides.failed() || by.restarts.is_given_up(who))
      since = now_;
    if (now_ - since > restart_pause_max)
      throw violation("starts: " + to_string(who) + " is not started again");
  }
}

/// Checks that a process that is killed had time to end by itself, or to speak.
void job_world::check_kill(const launcher& by, process_name who) const {
  if (who.role == role::coordinator)
    return require(now_ - by.heard_at > coordinator_patience,
                   "kills: the coordinator is killed though it was heard");
  const auto incarnation =
    who.role == role::server
      ? servers_.at(who.index)->id.incarnation
      : worker_processes_.at(who.index / options_.workers_per_process)->first;
  const auto listed = by.listed.find({who.role, who.index, incarnation});
  require(listed != by.listed.end() && now_ - listed->second > hung_processes::patience,
          "kills: a process is killed before it could end by itself");
}

/// Checks that the report has the user's request to stop, and the newest deaths, each once: those
/// of processes that were not told to end.
void job_world::check_report(const launcher& by) const {
  const auto& report = by.decides.report();
  require(report.stop == by.stop_asked, "stop: the user's request is not reported");
  const auto& told = report.deaths;
  const auto count = std::min(deaths_told, std::ssize(by.deaths));
  require(std::ranges::equal(told, std::span{by.deaths}.last(static_cast<std::size_t>(count))),
          "deaths: the report lacks one that was seen, or has one too much");
}

/// Checks that the events that its news brought are shown once, and in order.
void job_world::check_shown(const launcher& by) const {
  const auto& latest = *by.update();
  const auto& events = latest.desired_state.events;
  const auto total = latest.desired_state.events_total;
  const auto known = by.shown.find(latest.term);
  const auto first = std::max(total - events.size(), known == by.shown.end() ? 0 : known->second);
  std::vector<job_event> shown;
  for (const auto& each : by.said)
    if (std::ranges::find(events, each) != events.end())
      shown.push_back(each);
  require(std::ranges::equal(shown, std::span{events}.last(total - first)),
          "events: one of the coordinator is not shown once");
}

/// Checks that members are told to end only after the final evaluation. A launcher that is silent
/// is not waited for.
void job_world::check_dismissal() const {
  require(launcher_->trained || launcher_->stop_asked || any_failed_
            || was_missed(launcher_->id, now_ - surely_heard),
          "end: members are told to end before the final evaluation");
}

/// Checks, when the launcher kills all that is left, that those processes had time to end. Those
/// that do not hang have ended, if there were no faults for a while.
void job_world::check_rest(const launcher& by) const {
  const bool had_time =
    by.decides.failed() || (by.sent_away && now_ - *by.sent_away > end_patience);
  const bool all_know =
    by.sent_away && *by.sent_away - faults_end_ > all_told && !by.decides.failed();
  for (const auto& who : here_) {
    if (!runs(who))
      continue;
    require(had_time, "end: the run ends before its processes");
    const auto hangs = [&](const auto& all) {
      return std::ranges::any_of(
        all, [&](const auto& x) { return home_of(x.second->id) == who && x.second->hangs; });
    };
    require(!all_know || who.role == role::coordinator || hangs(servers_) || hangs(workers_),
            "end: a process is not told to end");
  }
}

void job_world::check_status(const launcher& by, const end_effect& what) const {
  const auto status = std::to_string(what.status) + (what.why ? ": " + what.why->text : "");
  switch (what.status) {
  case EXIT_SUCCESS:
    return require(by.sent_away && !present_failed_ && !by.restarts.has_failed() && by.trained,
                   "end: status 0 without a result");
  case 128 + SIGTERM:
    return require(by.stop_asked && !by.restarts.has_failed(),
                   "end: stopped though nobody asked for that");
  default: {
    // Then a coordinator may die or hang for longer than the launcher waits for a checkpoint.
    const bool is_late =
      by.stop_asked && what.abandoned && (*stop_at_ < faults_end_ || hang_at_.has_value());
    const bool was_cut_off =
      by.sent_away && !by.trained && was_missed(by.id, *by.sent_away - surely_heard);
    const bool is_explained = what.why && by.restarts.explains(what.why->text);
    require(any_failed_ || is_late || was_cut_off || is_explained, "end: status " + status);
    const auto* const told = by.update();
    require(what.abandoned || !told || !told->stop || !told->failed || what.why == told->failed,
            "end: the coordinator's failure is not the run's");
  }
  }
}

} // namespace troupe::sim
