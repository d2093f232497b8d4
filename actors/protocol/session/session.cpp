#include "actors/protocol/session/session.hpp"

#include "actors/protocol/mutation.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <utility>

namespace troupe {

namespace {

// Time for processes to end by themselves after the coordinator told them to.
constexpr std::chrono::seconds end_timeout{5};
// Silence after which a job on another host counts as gone: while joining it, and later.
constexpr std::chrono::seconds join_timeout{8};
constexpr std::chrono::seconds silence_timeout{60};
// Time for a coordinator to come and write the last checkpoint, if none answers; and, if no batch
// was trained yet, time for one to receive the request.
constexpr std::chrono::seconds stop_silence{5};
constexpr std::chrono::seconds early_stop_silence{2};
// Silence after which a failure ends the job, as no coordinator is there to end it.
constexpr std::chrono::seconds failed_silence{2};
// Most deaths in a report, which should stay small: older deaths have been received.
constexpr std::size_t deaths_max = 64;

} // namespace

session::session(session_options options, time_point now)
    : options_(std::move(options)), processes_(options_.pauses),
      coordinator_(options_.coordinator, now),
      evaluations_(options_.evaluates, options_.batches_per_epoch), started_at_(now), now_(now) {
  for (const auto& each : options_.processes)
    processes_.add(each, now);
}

session_effects session::take(const session_event& what, time_point now) {
  assert(now >= now_);
  now_ = now;
  if (stage_ == stage::over)
    return {};
  std::visit([this](const auto& each) { on(each); }, what);
  for (const auto& who : processes_.take_due(now_)) {
    assert(stage_ == stage::running && !ended_at_);
    effects_.push_back(start_effect{who});
  }
  return std::exchange(effects_, {});
}

// -- processes --

void session::on(const process_started& what) {
  processes_.started(what.who, what.incarnation, now_);
}

void session::on(const process_not_started& what) {
  if (processes_.has_run(what.who)) {
    processes_.start_failed(what.who, what.why, now_);
    return;
  }
  processes_.remove(what.who);
  if (what.who.role == role::server && added_.erase(what.who.index) > 0) {
    options_.servers_elsewhere.insert(what.who.index);
    say(note_of(what.why.text));
    return;
  }
  failure_ = what.why;
  end(true);
}

void session::on(const process_ended& what) {
  notices_.forget(to_string(what.who));
  if (const auto loss = processes_.ended(what.who, what.how, now_))
    lose(*loss);
}

/// Reports the loss of a process: one for each worker in it.
void session::lose(const process_loss& what) {
  const auto& workers = processes_.plan_of(process_of(what.member)).workers;
  for (std::size_t i = 0; i < std::max<std::size_t>(workers.size(), 1); ++i) {
    auto loss = what;
    if (!workers.empty()) {
      loss.member.index = workers[i];
      loss.member.incarnation.value += workers[i] - workers.front();
    }
    const bool leads = traits_of(loss.member.role).leads_job;
    const bool is_told = !mutated(mutation::death_unreported)
                         && (i == 0 || !mutated(mutation::one_of_process_reported));
    if (leads)
      coordinator_.lost(loss.detected_at);
    else if (is_told)
      report_.deaths.push_back({loss.member});
    const bool is_standby = leads && !loss.deposed && coordinator_.is_standby(loss.member.index);
    const auto name = is_standby ? "standby coordinator " + std::to_string(loss.member.index)
                                 : to_string(process_of(loss.member));
    say({event_kind::process_ended, {{"member", name}, {"reason", loss.how}}});
    effects_.push_back(lost_effect{std::move(loss)});
  }
  if (report_.deaths.size() > deaths_max)
    report_.deaths.erase(report_.deaths.begin(), report_.deaths.end() - deaths_max);
}

void session::on(const process_word& what) { processes_.told(what); }

void session::on(const notice& what) {
  if (!what.topic.empty())
    return notices_.take(what, now_);
  const auto line = what.member.empty() ? what.text : what.member + ": " + what.text;
  if (!failure_ || !failure_->text.ends_with(line)) // Else the end of the run tells it.
    say(note_of(line));
}

void session::kill(process_name who) {
  if (const auto possible = processes_.killed(who, now_); !possible)
    say(note_of(possible.error().text));
  else
    effects_.push_back(kill_effect{who});
}

/// Kills the processes of the kill plans whose time has come.
void session::kill_planned() {
  std::erase_if(options_.kills, [&](const kill_plan& plan) {
    if (now_ - *training_since_ < plan.after)
      return false;
    say({event_kind::kill_injected, {{"member", to_string(plan.who)}}});
    auto who = plan.who;
    for (const auto& each : options_.processes)
      if (each.who.role == who.role && std::ranges::count(each.workers, who.index) > 0)
        who = each.who;
    kill(who);
    return true;
  });
}

/// Follows the job's set of servers. Servers that left the job are not started again, and added
/// servers that no host runs are started here.
void session::follow_servers(const job_status& job) {
  std::set<std::uint32_t> wanted;
  for (const auto& server : job.servers)
    if (std::ranges::find(job.draining, server) == job.draining.end())
      wanted.insert(server.value);
  std::set<process_name> leaving;
  for (const auto& each : options_.processes)
    if (each.who.role == role::server && !wanted.contains(each.who.index))
      leaving.insert(each.who);
  for (const auto index : added_)
    if (!wanted.contains(index))
      leaving.insert({role::server, index});
  processes_.let_go(std::move(leaving));
  auto& elsewhere = options_.servers_elsewhere;
  std::erase_if(elsewhere, [&](std::uint32_t index) { return !wanted.contains(index); });
  for (const auto& status : job.members) {
    const auto who = process_of(status.member);
    if (who.role != role::server || !wanted.contains(who.index) || elsewhere.contains(who.index)
        || !processes_.may_add(who))
      continue;
    // The job may not miss an end here yet, nor know of the lives after it.
    if (status.member.incarnation != incarnation_id{} && !processes_.ran_as(status.member)) {
      elsewhere.insert(who.index);
    } else if (options_.added_server && !mutated(mutation::added_not_started)) {
      auto plan = *options_.added_server;
      plan.who = who;
      added_.insert(who.index);
      processes_.add(plan, now_);
    }
  }
}

// -- the coordinator --

void session::on(const job_update& what) {
  const auto& job = what.desired_state;
  auto found = coordinator_.follow(what, now_);
  for (auto& each : found.events) {
    if (each.kind == event_kind::checkpoint_failed || each.kind == event_kind::checkpoint_committed)
      is_newer_lost_ = each.kind == event_kind::checkpoint_failed;
    say(std::move(each));
  }
  if (found.is_back)
    effects_.push_back(recovered_effect{});
  if (found.is_hung && processes_.killed({role::coordinator, 0}, now_))
    effects_.push_back(kill_effect{{role::coordinator, 0}});
  checkpoint_ = std::max(checkpoint_, job.checkpoint);
  if (job.phase == job_phase::training && !training_since_)
    training_since_ = now_;
  is_finished_ = is_finished_ || job.phase == job_phase::finished;
  report_.done = report_.done || (is_finished_ && mutated(mutation::done_before_evaluated));
  if (!options_.joined)
    if (const auto epoch = evaluations_.look(what))
      effects_.push_back(evaluate_effect{*epoch});
  if (!what.stop) {
    follow_servers(job);
    for (const auto& who : hung_.find(processes_.incarnations(), job.members, now_)) {
      say({event_kind::process_hung, {{"member", to_string(who)}}});
      kill(who);
    }
  } else if (!ended_at_) {
    ended_at_ = now_;
    coordinator_.job_ended();
    processes_.wind_down();
    // The coordinator has the cause; processes here saw only effects.
    if (what.failed && !mutated(mutation::failure_forgotten))
      failure_ = what.failed;
    else if (job.phase != job_phase::stopped && options_.has_coordinator)
      fail("the coordinator sent this launcher away while the job went on");
  }
}

// -- results --

void session::on(const epoch_evaluated& what) {
  if (!evaluations_.done())
    return;
  assert(!report_.done);
  report_.done = true;
  if (what.failed)
    fail("trained, but the final parameters were not evaluated: " + what.failed->text);
  effects_.push_back(trained_effect{options_.exports && !what.failed});
}

void session::on(const file_written& what) {
  if (what.failed && (stage_ == stage::running || !failure_))
    failure_ = what.failed;
  if (stage_ == stage::writing)
    end(false);
}

// -- the end --

void session::on(const stop_asked& what) {
  stop_signal_ = what.signal;
  if (stop_asked_at_ || options_.joined) { // A host that joined waits for no last checkpoint.
    stopped_at_once_ = true;
    fail(options_.joined ? "left the job, which goes on without it" : "stopped at once");
    return;
  }
  stop_asked_at_ = now_;
  checkpoint_at_stop_ = checkpoint_;
  report_.stop = !mutated(mutation::stop_unreported);
  say({event_kind::stopping, {}});
}

bool session::is_saved() const {
  const bool has_work = training_since_ && !is_finished_ && options_.has_coordinator;
  return !has_work || (checkpoint_ > checkpoint_at_stop_ && !is_newer_lost_);
}

void session::on(const time_passed&) {
  for (auto& line : notices_.lines(now_))
    say({event_kind::process_waits, {{"text", std::move(line)}}});
  for (auto& line : processes_.take_lines())
    say({event_kind::process_waits, {{"text", std::move(line)}}});
  if (const auto& why = processes_.failed())
    give_up(*why);
  if (training_since_)
    kill_planned();
  if (stage_ == stage::running)
    look_at_end();
}

/// Ends the job, as a process of this host cannot be kept alive.
void session::give_up(const failure& why) {
  if (failure_)
    return;
  failure_ = report_.failed = why;
  gave_up_at_ = now_;
}

void session::look_at_end() {
  const auto silent = [this](time_point begin, time_point time) {
    return coordinator_.is_silent_since(begin, time, now_);
  };
  if (stopped_at_once_)
    return end(true);
  const bool waits_for_stop = stop_asked_at_ && !ended_at_ && !gave_up_at_;
  if (waits_for_stop && !training_since_ && silent(*stop_asked_at_, early_stop_silence)) {
    stopped_at_once_ = true; // No work is lost by it.
    return abandon(std::string{"stopped before the training began"}
                   + (options_.has_coordinator ? ": no word from the coordinator" : ""));
  }
  if (waits_for_stop && silent(*stop_asked_at_, stop_silence))
    return abandon("no last checkpoint, as no coordinator answers; stopped without it");
  if (stop_asked_at_ && now_ - *stop_asked_at_ > last_checkpoint_max)
    return abandon(is_finished_ ? "stopped before the last evaluation was done"
                                : "no last checkpoint within 20 s; stopped without it");
  // Without a coordinator no message ends the job.
  const bool is_over = gave_up_at_
                       && (!options_.has_coordinator || now_ - *gave_up_at_ > end_timeout
                           || silent(*gave_up_at_, failed_silence));
  const bool has_ended =
    ended_at_ && !awaits_final_evaluation()
    && (running() == 0 || now_ - *ended_at_ > end_timeout || mutated(mutation::ends_at_once));
  if (is_over || has_ended)
    return finish();
  const auto heard = coordinator_.heard_at();
  if (!ended_at_ && options_.joined
      && now_ - heard.value_or(started_at_) > (heard ? silence_timeout : join_timeout))
    abandon("no job answers at " + options_.coordinator.address);
}

/// Returns whether members that ended by themselves left parameters that are to be evaluated.
bool session::awaits_final_evaluation() const {
  return !options_.has_coordinator && is_finished_ && !report_.done;
}

/// Leaves out the standbys, which wait until they are killed.
std::size_t session::running() const {
  const auto all = processes_.running();
  return all - std::min(all, options_.standbys);
}

void session::abandon(const std::string& why) {
  fail(why);
  end(true);
}

void session::finish() {
  const bool has_to_evaluate = options_.has_coordinator && !options_.joined && stop_signal_ == 0;
  if (has_to_evaluate && !report_.done && !failure_)
    fail("the final parameters were not evaluated: this launcher was cut off from the job as it "
         "ended");
  processes_.wind_down();
  for (const auto& plan : options_.kills)
    say({event_kind::kill_missed,
         {{"member", to_string(plan.who)},
          {"seconds", std::chrono::duration<double>(plan.after).count()}}});
  stage_ = stage::writing;
  effects_.push_back(results_effect{});
}

void session::end(bool abandoned) {
  assert(stage_ != stage::over);
  processes_.wind_down();
  stage_ = stage::over;
  effects_.push_back(end_effect{exit_status(), failure_, abandoned});
}

int session::exit_status() const {
  if (failure_ && !stopped_at_once_)
    return EXIT_FAILURE;
  // A request to stop came too late. Without a coordinator a stopped job is evaluated, too.
  const bool is_done = report_.done && !failure_ && options_.has_coordinator;
  return stop_signal_ == 0 || is_done ? EXIT_SUCCESS : 128 + stop_signal_;
}

} // namespace troupe
