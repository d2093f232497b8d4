// The launcher, and the commands `troupe add` and `troupe drain`. The launcher is a shell: its
// session decides which processes start again, what is evaluated, and when the run is over.
#include "cli/sim/job_world_parts.hpp"

namespace troupe::sim {
namespace {

/// The longest time that a process needs to start.
constexpr std::uint64_t start_ms_max = 50;
constexpr std::uint64_t evaluation_ms_max = 200, evaluation_long_ms_max = 1500;

bool is_clean(const process_end& end) {
  return end.how == process_end::kind::exited && end.number == EXIT_SUCCESS;
}

} // namespace

bool job_world::launcher::wants(process_name who) const {
  const auto* const latest = update();
  if (latest == nullptr || latest->stop)
    return latest == nullptr;
  const auto names = [&](const std::vector<server_id>& all) {
    return std::ranges::find(all, server_id{who.index}) != all.end();
  };
  const auto& now = latest->desired_state;
  return who.role != role::server || (names(now.servers) && !names(now.draining));
}

/// Starts a launcher, which starts the processes of its host. Other hosts start theirs.
void job_world::start_launcher() {
  launcher_ = std::make_unique<launcher>(session_options_of(), now_);
  launcher_->id = {role::observer, 0, next_incarnation()};
  take(*launcher_, time_passed{});
  every(launcher_->id, launcher_interval, [this] { act(*launcher_); });
  every(launcher_->id, report_interval, [this] { observe_for_commands(); });
  for (const auto& who : first_processes())
    start_elsewhere(who, now_ + pick_ms(0, start_ms_max));
}

/// Returns the options of real jobs with shorter pauses. Only the node of a process that is to
/// crash has limits.
session_options job_world::session_options_of() const {
  const auto on_death = [this](role of) {
    return crashes_ && crashes_->who.role == of ? crashes_->limits
                                                : supervision{.crashes_max = 1000};
  };
  session_options how;
  how.processes.push_back({{role::coordinator, 0}, "", on_death(role::coordinator)});
  for (const auto& who : first_processes()) {
    const bool is_worker = who.role == role::worker;
    if (is_here(who))
      how.processes.push_back({who, is_worker ? "workers" : "servers", on_death(who.role),
                               is_worker ? group_of(who.index) : std::vector<std::uint32_t>{}});
    else if (!is_worker)
      how.servers_elsewhere.insert(who.index);
  }
  how.added_server = process_plan{{role::server, 0}, "servers", on_death(role::server)};
  how.pauses = {.min = 10ms, .max = 200ms, .dismissed = 300ms, .quick = 0ms};
  // Pauses that double in steps of the launcher's interval, and dismissals that count.
  if (crashes_)
    how.pauses = {.min = 60ms, .max = 400ms, .dismissed = 100ms, .quick = 500ms};
  how.evaluates = evaluated_parameters::epochs;
  how.exports = options_.resume;
  how.batches_per_epoch = job().batches_per_epoch();
  how.coordinator = {.address = "simulated", .is_only_one = true};
  return how;
}

void job_world::act(launcher& by) {
  if (by.end)
    return;
  by.said.clear();
  if (stop_at_ && now_ >= *stop_at_ && !std::exchange(by.stop_asked, true))
    take(by, stop_asked{SIGTERM});
  for (const auto& each : std::exchange(by.heard, {})) {
    const auto* const end = std::get_if<process_ended>(&each.what);
    const bool is_loss = end == nullptr || !is_clean(end->how) || !by.may_end(end->who);
    if (is_loss)
      for (const auto& who : each.lost)
        by.deaths.push_back({who});
    if (end != nullptr)
      by.down.emplace(end->who, now_);
    if (std::holds_alternative<epoch_evaluated>(each.what))
      by.evaluates = false;
    take(by, each.what);
  }
  if (by.news || by.arrived)
    follow(by);
  take(by, time_passed{});
  check_report(by);
  check_restarts(by);
  check_limits(by);
  const auto& report = by.decides.report();
  if (report == by.reported && now_ - by.reported_at < report_interval)
    return;
  by.reported = report;
  by.reported_at = now_;
  send_up(by, report);
}

void job_world::follow(launcher& by) {
  if (by.arrived) {
    if (by.news)
      for (const auto& status : by.update()->desired_state.members)
        by.listed[status.member] = now_;
    by.news = *std::exchange(by.arrived, std::nullopt);
    by.heard_at = now_;
  }
  const auto& latest = *by.update();
  if (latest.stop && !by.sent_away)
    by.sent_away = now_;
  take(by, *by.news);
  check_shown(by);
  by.shown[latest.term] = latest.desired_state.events_total;
  for (const auto& status : latest.desired_state.members)
    if (const auto who = home_of(status.member); // An added server that nobody runs.
        who.role == role::server && who.index >= job().servers && !runs(who)
        && status.member.incarnation == incarnation_id{} && !by.starting.contains(who))
      by.down.try_emplace(who, now_);
}

void job_world::take(launcher& by, const session_event& what) {
  expect(by, what);
  for (const auto& effect : by.decides.take(what, now_))
    std::visit([&](const auto& each) { run(by, each); }, effect);
}

void job_world::reconcile_as_observer(const desired_state& what) {
  const auto* mine = std::get_if<job_status>(&what.body);
  if (mine == nullptr)
    return;
  if (const auto found = commands_.find(what.to); found != commands_.end()) {
    const auto& wanted = found->second.wanted;
    const bool heard =
      std::ranges::all_of(
        wanted.add,
        [&](auto x) { return std::ranges::find(mine->servers, x) != mine->servers.end(); })
      && std::ranges::all_of(wanted.drain, [&](auto x) {
           return std::ranges::find(mine->draining, x) != mine->draining.end();
         });
    if (what.stop || heard)
      commands_.erase(found);
    return;
  }
  if (what.to != launcher_->id || !launcher_->takes(what))
    return;
  launcher_->arrived = {*mine, what.term, what.stop, what.failed, what.sequence};
}

// -- processes ----------------------------------------------------------------------------------

void job_world::hear_end(process_name who, process_end how, const std::vector<member_id>& lost) {
  launcher_->heard.push_back({process_ended{who, std::move(how)}, lost});
}

/// Tells the launcher once that a process has done work.
void job_world::hear_work(const member_id& who) {
  const auto home = home_of(who);
  auto& has_worked = who.role == role::server ? servers_.at(who.index)->has_worked
                                              : process_of(*workers_.at(who.index)).has_worked;
  if (std::exchange(has_worked, true) || !is_here(home))
    return;
  launcher_->heard.push_back({process_word{home, word_kind::works}});
  if (is_crashing(home))
    plan_crash(true);
}

void job_world::run(launcher& by, const start_effect& effect) {
  const auto who = effect.who;
  check_start(by, who);
  by.down.erase(who);
  by.starting.insert(who);
  here_.insert(who);
  const bool is_slow = by.ran.contains(who) && !is_crashing(who);
  const auto delay = is_slow ? absence_of(who.role) : pick_ms(0, start_ms_max);
  at(now_ + delay, [this, who, run = by.id] {
    if (launcher_->id == run && !launcher_->is_over)
      start_here(*launcher_, who);
  });
}

/// Starts a process. Only a start of one that ran before may fail, as else the run ends.
void job_world::start_here(launcher& by, process_name who) {
  by.starting.erase(who);
  const bool again = !by.ran.insert(who).second;
  if (again && !quiet_ && chance(start_failure_)) {
    ++tally_.failed_starts;
    by.down.emplace(who, now_);
    by.heard.push_back({process_not_started{who, {errc::io_failed, "no memory by chance"}}});
    return;
  }
  if (runs(who)) // On a host that was told to end it.
    take_down(who);
  tally_.restarts += again ? 1 : 0;
  const auto incarnation = start(who);
  by.heard.push_back({process_started{who, incarnation}});
  if (is_crashing(who))
    plan_crash(false);
}

void job_world::run(launcher& by, const kill_effect& effect) {
  const auto who = effect.who;
  by.restarts.killed(who);
  if (!runs(who))
    return; // The launcher has not heard of its end.
  check_kill(by, who);
  ++tally_.hung_kills;
  note("the launcher kills " + to_string(who));
  if (who.role == role::coordinator)
    return kill_coordinator();
  hear_end(who, killed, take_down(who));
}

// -- results ------------------------------------------------------------------------------------

void job_world::run(launcher& by, const evaluate_effect&) {
  require(!by.evaluates && !by.trained,
          "evaluations: one is asked for while another runs, or after the final one");
  by.evaluates = true;
  ++tally_.evaluations;
  const auto time = pick_ms(1, chance(0.2) ? evaluation_long_ms_max : evaluation_ms_max);
  at(now_ + time, [this, run = by.id] {
    if (launcher_->id == run)
      launcher_->heard.push_back({epoch_evaluated{}});
  });
}

void job_world::run(launcher& by, const trained_effect& effect) {
  by.trained = true;
  if (effect.exports)
    take(by, file_written{});
}

void job_world::run(launcher& by, const say_effect& effect) {
  by.said.push_back(effect.what);
  if (is_traced())
    note("launcher: " + text_of(effect.what));
}

void job_world::run(launcher& by, const results_effect&) {
  check_rest(by);
  by.is_over = true;
  for (const auto& who : here_)
    if (runs(who))
      take_down(who);
  take(by, file_written{});
}

void job_world::run(launcher& by, const end_effect& effect) {
  note("the launcher ends with status " + std::to_string(effect.status)
       + (effect.why ? ": " + effect.why->text : ""));
  check_status(by, effect);
  by.is_over = true;
  by.end = effect;
}

// -- commands -----------------------------------------------------------------------------------

void job_world::observe_for_commands() {
  for (auto& [unused, each] : commands_) {
    observer_status wanted;
    wanted.resize = each.wanted;
    send_up(each, std::move(wanted));
  }
}

void job_world::begin_command() {
  if (options_.spare_servers == 0)
    return;
  const auto servers_max = job().servers + options_.spare_servers;
  command fresh;
  fresh.id = {role::observer, 1, next_incarnation()};
  const server_id which{static_cast<std::uint32_t>(pick(0, servers_max - 1))};
  if (chance(0.6))
    fresh.wanted.add.push_back(which);
  else
    fresh.wanted.drain.push_back(which);
  if (is_traced())
    note(std::string{"a command wants to "} + (fresh.wanted.add.empty() ? "drain" : "add")
         + " server " + std::to_string(which.value));
  at(now_ + 3s, [this, who = fresh.id] { commands_.erase(who); });
  commands_.emplace(fresh.id, std::move(fresh));
}

} // namespace troupe::sim
