#include "cli/sim/restart_oracle.hpp"

#include "fmt/format.h"

#include <signal.h>

#include <algorithm>
#include <ranges>
#include <utility>

namespace troupe::sim {
namespace {

constexpr std::size_t dismissals_max = 6;
constexpr std::string_view goes_on = "; the job goes on without it";

bool is_kill(const process_end& end) {
  return end.how == process_end::kind::signalled && end.number == SIGKILL;
}

/// Returns the end and its reason, as the user has to read them.
std::string text_of(const process_end& end) {
  const bool has_exited = end.how == process_end::kind::exited;
  const bool has_words = (has_exited || end.number == SIGABRT) && !end.last_words.empty();
  return fmt::format("({} {}{}): {}", has_exited ? "exit status" : "killed by signal", end.number,
                     is_kill(end) ? " (perhaps out of memory)" : "",
                     has_words ? end.last_words : "see " + end.log);
}

} // namespace

// -- the rules ----------------------------------------------------------------------------------

/// Counts the last dismissals, each in a short life. A failed start is no life.
std::size_t restart_oracle::dismissals(const std::vector<life>& lives) const {
  std::size_t count = 0;
  for (const auto& each : lives | std::views::reverse)
    if (each.how == ending::dismissed && each.lasted < how_.pauses.quick)
      ++count;
    else if (each.how != ending::failed_start)
      break;
  return count;
}

/// Counts the ends without work since the last end after work.
std::size_t restart_oracle::row(const std::vector<life>& lives) {
  std::size_t count = 0;
  for (const auto& each : lives | std::views::reverse)
    if (each.how != ending::dismissed) {
      if (each.has_worked)
        break;
      ++count;
    }
  return count;
}

restart_oracle::next_start restart_oracle::after(const std::vector<life>& lives,
                                                 const supervision& limits) const {
  const auto& last = lives.back();
  if (last.how == ending::dismissed) {
    const auto count = dismissals(lives);
    return count < dismissals_max
             ? next_start{.pause = how_.pauses.dismissed}
             : next_start{.too_often = fmt::format("{} times at once, as it was told to", count)};
  }
  const auto most = static_cast<std::size_t>(limits.crashes_max);
  const auto without_work = row(lives);
  const auto crashes = static_cast<std::size_t>(std::ranges::count_if(lives, [&](const life& x) {
    return x.how == ending::crash && x.ended + limits.window >= last.ended;
  }));
  if (without_work >= most)
    return {.too_often =
              fmt::format("{} times in a row before it had done any work", without_work)};
  if (last.how != ending::failed_start && crashes >= most)
    return {.too_often = fmt::format("{} times within {} s", crashes, limits.window.count())};
  auto pause = without_work == 0 ? 0ms : how_.pauses.min;
  for (std::size_t i = 1; i < without_work && pause < how_.pauses.max; ++i)
    pause *= 2;
  return {.pause = std::min(pause, how_.pauses.max)};
}

// -- events -------------------------------------------------------------------------------------

void restart_oracle::take(const process_started& what, bool, time_point now) {
  auto& mine = processes_[what.who];
  mine.begun = now;
  mine.has_worked = mine.is_killed = false;
}

void restart_oracle::take(const process_word& what, bool, time_point) {
  auto& mine = processes_[what.from];
  if (what.kind == word_kind::works)
    mine.has_worked = true;
  else
    mine.said = what;
}

void restart_oracle::take(const process_not_started& what, bool may_end, time_point now) {
  if (may_end)
    return;
  auto& mine = processes_[what.who];
  mine.lives.push_back({.how = ending::failed_start, .ended = now});
  const auto next = after(mine.lives, plan_of(what.who).on_death);
  if (next.too_often.empty())
    mine.due = now + next.pause;
  else
    give_up(what.who, to_string(what.who) + " cannot be started again: " + what.why.text);
}

void restart_oracle::take(const process_ended& what, bool may_end, time_point now) {
  auto& mine = processes_[what.who];
  const auto said = std::exchange(mine.said, std::nullopt);
  if (said && said->kind == word_kind::hopeless) {
    mine.is_given_up = true;
    if (!may_end)
      reasons_.push_back(said->text);
    return;
  }
  if (may_end)
    return;
  if (mine.is_killed) {
    mine.due = now;
    return;
  }
  const auto how = said ? ending::dismissed : is_kill(what.how) ? ending::sigkill : ending::crash;
  mine.lives.push_back({how, now - mine.begun, now, mine.has_worked});
  const auto next = after(mine.lives, plan_of(what.who).on_death);
  if (next.too_often.empty())
    mine.due = now + next.pause;
  else
    give_up(what.who,
            fmt::format("{} ended {} {}", to_string(what.who), next.too_often, text_of(what.how)));
}

void restart_oracle::let_go(const std::function<bool(process_name)>& leaves) {
  for (auto& [who, what] : processes_)
    if (leaves(who))
      what.due.reset();
}

/// Leaves out the process if its node wants that and another one of the node is there.
void restart_oracle::give_up(process_name who, const std::string& why) {
  processes_[who].is_given_up = true;
  const auto& mine = plan_of(who);
  const bool others = std::ranges::any_of(how_.processes, [&](const process_plan& x) {
    return x.node == mine.node && !is_given_up(x.who);
  });
  if (mine.on_death.then == troupe::outcome::leave_out && others) {
    ++left_out_;
    lines_.push_back(why + std::string{goes_on});
  } else {
    has_failed_ = true;
    reasons_.push_back(why);
  }
}

/// Returns the plan of a process of the host. All added servers have one plan.
const process_plan& restart_oracle::plan_of(process_name who) const {
  const auto found = std::ranges::find(how_.processes, who, &process_plan::who);
  return found != how_.processes.end() ? *found : how_.added_server.value();
}

bool restart_oracle::is_given_up(process_name who) const {
  const auto found = processes_.find(who);
  return found != processes_.end() && found->second.is_given_up;
}

bool restart_oracle::explains(const std::string& text) const {
  return std::ranges::any_of(reasons_, [&](const auto& why) { return text.ends_with(why); });
}

// -- checks -------------------------------------------------------------------------------------

void restart_oracle::check_start(process_name who, time_point now) {
  auto& mine = processes_[who];
  require(!mine.is_given_up, "limits: " + to_string(who) + " is started after its last end");
  require(!mine.due || now >= *mine.due,
          "limits: " + to_string(who) + " is started before its pause is over");
  require(!mine.due || now < *mine.due + interval_,
          "limits: " + to_string(who) + " is started long after its pause");
  mine.due.reset();
}

void restart_oracle::check(const session& decides, std::span<const job_event> said,
                           time_point now) {
  for (const auto& [who, what] : processes_)
    require(!what.due || now < *what.due, "limits: " + to_string(who) + " is not started again");
  const auto& failed = decides.failed();
  require(!has_failed_ || (failed && decides.report().failed),
          "limits: the job goes on though a process has reached a limit");
  require(!failed || explains(failed->text),
          "limits: the job ends though no process has reached a limit"
            + (failed ? ": " + failed->text : ""));
  std::vector<std::string> lines;
  for (const auto& each : said)
    if (each.kind == event_kind::process_waits && each.text("text").ends_with(goes_on))
      lines.emplace_back(each.text("text"));
  require(lines == std::exchange(lines_, {}),
          "limits: the user does not read which process was left out");
}

} // namespace troupe::sim
