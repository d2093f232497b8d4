// A process of the launcher's host that ends again and again, under limits that few ends reach.
#include "cli/sim/job_world_parts.hpp"

namespace troupe::sim {
namespace {

/// The longest life that ends before any work, if the process is that slow.
constexpr std::uint64_t short_life_ms = 60;
constexpr int limit_max = 5;
constexpr std::uint64_t ends_beside_limit = 3; ///< The most ends that follow the limit.
constexpr double dismissed_jobs = 0.15;

} // namespace

/// Draws the process and the limits of its node. Only workers may be left out.
void job_world::draw_crashes() {
  const auto all = first_processes();
  crash_plan plan{.who = all[pick(0, all.size() - 1)], .limits = {}};
  here_.insert(plan.who);
  plan.limits.crashes_max = static_cast<int>(pick(1, limit_max));
  plan.limits.window = std::chrono::seconds{pick(1, 2)};
  if (!traits_of(plan.who.role).holds_values && chance(0.6))
    plan.limits.then = troupe::outcome::leave_out;
  plan.is_dismissed = chance(dismissed_jobs);
  plan.left = plan.is_dismissed ? pick(3, 9) : pick(1, limit_max + ends_beside_limit);
  plan.before_work = plan.is_dismissed || chance(0.3) ? 1.0 : chance(0.5) ? 0.5 : 0.0;
  plan.after_work_ms = chance(0.3) ? 1500 : chance(0.5) ? 400 : 50;
  crashes_ = plan;
}

/// Plans the end of the present life of the process, at its start or after its first work.
void job_world::plan_crash(bool has_worked) {
  auto& plan = *crashes_;
  if (plan.left == 0 || (!has_worked && !chance(plan.before_work)))
    return;
  const auto& who = traits_of(plan.who.role).holds_values
                      ? servers_.at(plan.who.index)->id
                      : worker_processes_.at(plan.who.index / options_.workers_per_process)->id;
  const auto life = pick_ms(0, has_worked ? plan.after_work_ms : short_life_ms);
  when_awake(who, now_ + life, [this, who] { crash(who); });
}

/// Ends the process, unless the faults are over.
void job_world::crash(const member_id& who) {
  const bool is_late = quiet_ || launcher_->sent_away || launcher_->is_over
                       || (coordinator_ && coordinator_->decider->phase() == job_phase::stopped);
  if (is_late || crashes_->left == 0)
    return;
  --crashes_->left;
  tally_.crashing += tally_.crashes == 0 ? 1 : 0;
  ++tally_.crashes;
  const auto home = home_of(who);
  if (is_traced())
    note(to_string(home) + " crashes");
  const auto lost = take_down(home);
  if (coordinator_ && chance(connections_seen_))
    disconnect(lost);
  if (!crashes_->is_dismissed)
    return hear_end(home, draw_end(), lost);
  launcher_->heard.push_back({process_word{home, word_kind::dismissed}});
  hear_end(home, {}, {});
}

/// Draws an exit status or a signal, also those of ends that are often harmless.
process_end job_world::draw_end() {
  process_end end{.last_words = "out of luck", .log = "its log"};
  if (chance(0.5)) {
    end.number = static_cast<int>(pick(0, 3));
    return end;
  }
  end.how = process_end::kind::signalled;
  end.number = std::array{SIGABRT, SIGSEGV, SIGKILL}[pick(0, 2)];
  return end;
}

} // namespace troupe::sim
