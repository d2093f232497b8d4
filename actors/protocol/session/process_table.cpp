#include "actors/protocol/session/process_table.hpp"

#include "actors/protocol/mutation.hpp"

#include <signal.h>

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

namespace troupe {

namespace {

/// Describes a death by a signal, and its likely cause where it was not planned.
std::string text_of_signal(const process_end& end, bool planned) {
  auto text = "killed by signal " + std::to_string(end.number);
  if (end.number == SIGXCPU)
    return text + end.limits;
  if (end.number != SIGKILL || planned)
    return text;
  if (!end.limits.empty())
    return text + " (perhaps out of processor time or memory" + end.limits + ")";
  return text + (end.lacked_memory ? " (out of memory)" : " (perhaps out of memory)");
}

/// Returns "exit status 1" or "killed by signal 9", with a likely cause.
std::string text_of(const process_end& end, bool planned) {
  switch (end.how) {
  case process_end::kind::exited: return "exit status " + std::to_string(end.number);
  case process_end::kind::signalled: return text_of_signal(end, planned);
  case process_end::kind::unknown: break;
  }
  return "its exit status is lost, as code of the launcher waits for all children or ignores "
         "SIGCHLD";
}

/// Returns the last words of a process, or the place to look. A signal other than SIGABRT comes
/// without words.
std::string reason_of(const process_end& end) {
  const bool has_words = end.how != process_end::kind::signalled || end.number == SIGABRT;
  return has_words && !end.last_words.empty() ? end.last_words : "see " + end.log;
}

bool is_clean(const process_end& end) {
  return end.how == process_end::kind::exited && end.number == 0;
}

} // namespace

void process_table::add(const process_plan& what, time_point now) {
  assert(may_add(what.who));
  process fresh{what, restart_rules{what.on_death, pauses_}};
  if (const auto known = processes_.find(what.who); known != processes_.end())
    std::tie(fresh.rules, fresh.ran) = std::tie(known->second.rules, known->second.ran);
  fresh.start_at = now;
  processes_.insert_or_assign(what.who, std::move(fresh));
}

std::vector<process_name> process_table::take_due(time_point now) {
  std::vector<process_name> due;
  for (auto& [who, what] : processes_) {
    if (leaving_.contains(who) && !mutated(mutation::leaving_started))
      what.start_at.reset();
    if (!what.start_at || *what.start_at > now
        || (winding_down_ && !mutated(mutation::started_after_end)))
      continue;
    assert(!what.runs && !what.given_up && !leaving_.contains(who) && !winding_down_);
    what.start_at.reset();
    what.starts = true;
    due.push_back(who);
  }
  return due;
}

void process_table::started(process_name who, incarnation_id incarnation, time_point now) {
  auto& what = processes_.at(who);
  assert(!what.runs);
  what.runs = true;
  what.starts = false;
  what.incarnation = incarnation;
  what.ran.insert(incarnation);
  what.killed_at.reset();
  what.rules.started(now);
}

void process_table::start_failed(process_name who, const failure& why, time_point now) {
  auto& what = processes_.at(who);
  what.starts = false;
  if (may_end(who))
    return;
  const auto next = what.rules.start_failed();
  if (!next.too_often)
    what.start_at = now + next.pause;
  else
    end_restarts(who, what, to_string(who) + " cannot be started again: " + why.text);
}

void process_table::remove(process_name who) {
  assert(!processes_.at(who).runs);
  processes_.erase(who);
}

bool process_table::ran_as(const member_id& who) const {
  const auto found = processes_.find(process_of(who));
  return found != processes_.end() && found->second.ran.contains(who.incarnation);
}

void process_table::told(const process_word& what) {
  const auto from = processes_.find(what.from);
  if (from == processes_.end())
    return;
  if (what.kind == word_kind::works)
    from->second.rules.worked();
  else
    from->second.said = what;
}

result<void> process_table::killed(process_name who, time_point now) {
  const auto found = processes_.find(who);
  if (found == processes_.end() || !found->second.runs)
    return {errc::invalid_argument, to_string(who) + " does not run here"};
  found->second.killed_at = now;
  return {};
}

std::optional<process_loss> process_table::ended(process_name who, const process_end& end,
                                                 time_point now) {
  auto& what = processes_.at(who);
  assert(what.runs);
  what.runs = false;
  const auto said = std::exchange(what.said, std::nullopt);
  const auto was_said = [&](word_kind kind) { return said && said->kind == kind; };
  if (was_said(word_kind::hopeless)) {
    const auto name = to_string(who);
    what.given_up = true;
    if (may_end(who))
      return std::nullopt;
    failed_ = failure{errc::job_failed,
                      said->text.starts_with(name) ? said->text : name + ": " + said->text};
    return std::nullopt;
  }
  const bool killed_by_9 = end.how == process_end::kind::signalled && end.number == SIGKILL;
  const auto cause = what.killed_at                   ? end_cause::killed
                     : was_said(word_kind::deposed)   ? end_cause::deposed
                     : was_said(word_kind::dismissed) ? end_cause::dismissed
                     : killed_by_9                    ? end_cause::sigkill
                                                      : end_cause::crash;
  const auto how =
    cause == end_cause::deposed ? said->text : text_of(end, what.killed_at.has_value());
  std::optional<process_loss> lost;
  if ((cause != end_cause::dismissed || mutated(mutation::dismissed_is_lost))
      && !(is_clean(end) && may_end(who)))
    lost = process_loss{{who.role, who.index, what.incarnation},
                        what.killed_at.value_or(now),
                        now,
                        how + (is_clean(end) ? " although the job goes on" : "")
                          + (cause == end_cause::crash ? ": " + reason_of(end) : ""),
                        cause == end_cause::deposed};
  if (may_end(who) || (cause == end_cause::sigkill && mutated(mutation::lost_not_started)))
    return lost;
  const auto next = what.rules.ended(cause, now);
  if (!next.too_often || mutated(mutation::left_out_started))
    what.start_at = now + next.pause;
  if (next.too_often)
    end_restarts(who, what,
                 to_string(who) + " ended " + *next.too_often + " (" + how
                   + "): " + reason_of(end));
  return lost;
}

bool process_table::may_end(process_name who) const {
  return (winding_down_ && !mutated(mutation::started_after_end))
         || (leaving_.contains(who) && !mutated(mutation::leaving_started));
}

/// Leaves the process out or, if that is not wanted or no process of its node is left, gives up.
void process_table::end_restarts(process_name who, process& what, const std::string& why) {
  what.given_up = true;
  const bool others = std::ranges::any_of(processes_, [&](const auto& x) {
    const auto& [name, other] = x;
    return name != who && other.plan.node == what.plan.node && !other.given_up;
  });
  const bool is_left_out =
    what.rules.then() == outcome::leave_out && !mutated(mutation::left_out_fails);
  if (is_left_out && (others || mutated(mutation::last_left_out)))
    lines_.push_back(why + "; the job goes on without it");
  else
    failed_ = failure{errc::job_failed, why};
}

void process_table::let_go(std::set<process_name> leaving) {
  leaving_ = std::move(leaving);
  for (const auto& who : leaving_)
    if (const auto found = processes_.find(who);
        found != processes_.end() && !mutated(mutation::leaving_started))
      found->second.start_at.reset();
}

bool process_table::may_add(process_name who) const {
  const auto found = processes_.find(who);
  if (found == processes_.end())
    return true;
  const auto& what = found->second;
  return !what.runs && !what.starts && !what.start_at
         && (!what.given_up || mutated(mutation::given_up_added));
}

std::size_t process_table::running() const {
  return static_cast<std::size_t>(
    std::ranges::count_if(processes_, [](const auto& x) { return x.second.runs; }));
}

std::map<process_name, incarnation_id> process_table::incarnations() const {
  std::map<process_name, incarnation_id> all;
  for (const auto& [who, what] : processes_)
    if (what.runs)
      all.emplace(who, what.incarnation);
  return all;
}

std::vector<std::string> process_table::take_lines() { return std::exchange(lines_, {}); }

} // namespace troupe
