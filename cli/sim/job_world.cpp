// The simulated job: processes, faults, and the end.
#include "cli/sim/job_world_parts.hpp"

namespace troupe::sim {
namespace {

/// Interval at which the rates below are applied.
constexpr milliseconds fault_interval = 10ms;
constexpr std::uint64_t absence_long_ms = 4000, coordinator_absence_long_ms = 2000;
/// No member is missed sooner.
constexpr time_point silence_min = 1300ms;
/// The user stops one of this number of jobs: some among faults, the others when all is quiet.
constexpr std::uint64_t jobs_per_stop = 8;
constexpr time_point stop_interval = 50ms;
/// In one of this number of jobs a process ends again and again.
constexpr std::uint64_t jobs_per_crash = 6;
/// In one of this number of jobs workers have lines, unless it is bsp.
constexpr std::uint64_t jobs_per_line = 5;
/// Share of jobs of which a process hangs, and of the coordinator among such processes.
constexpr double hanging_jobs = 0.08, hanging_coordinators = 0.2;
/// Time after which other hosts start a process again that was told to end.
constexpr time_point restart_pause_elsewhere = 300ms;
/// The end of a pause that only a kill ends.
constexpr time_point never = 10h;

bool may_read_anywhere(std::size_t kind) { return !simulated_modes[kind].bounded_lead; }
bool has_single_pushes(std::size_t kind) { return !simulated_modes[kind].clock_updates; }

} // namespace

const std::vector<minimum<job_tally>> job_world::minima{
  {"entries applied", &job_tally::applied, 100},
  {"pushes repeated", &job_tally::repeated, 3},
  {"pushes refused", &job_tally::refused, 1},
  {"pulls answered", &job_tally::answered, 225},
  {"... by any replica", &job_tally::answered_anywhere, 25, may_read_anywhere},
  {"workers killed", &job_tally::worker_kills, 1.3},
  {"servers killed", &job_tally::server_kills, 0.9},
  {"restarts unnoticed", &job_tally::unnoticed_restarts, 0.15},
  {"restarts by launchers", &job_tally::restarts, 1},
  {"starts failed", &job_tally::failed_starts, 0.05},
  {"processes that crash", &job_tally::crashing, 0.12},
  {"... their ends", &job_tally::crashes, 0.3},
  {"... that stay out", &job_tally::stays_out, 0.01},
  {"... that fail the job", &job_tally::gives_up, 0.05},
  {"processes hung", &job_tally::hangs, 0.03},
  {"... and killed", &job_tally::hung_kills, 0.01},
  {"evaluations", &job_tally::evaluations, 1},
  {"coordinators killed", &job_tally::coordinator_kills, 0.5},
  {"processes paused", &job_tally::pauses, 1.4},
  {"connections cut", &job_tally::cuts, 1.4},
  {"links broken", &job_tally::links_broken, 0.9},
  {"slow saves", &job_tally::slow_saves, 0.4},
  {"jobs resumed", &job_tally::resumes, 0.05},
  {"replicas copied", &job_tally::copies, 0.5},
  {"failovers", &job_tally::failovers, 0.15},
  {"shards moved", &job_tally::moves, 0.09},
  {"servers added", &job_tally::additions, 0.08},
  {"servers drained", &job_tally::drains, 0.04},
  {"checkpoints committed", &job_tally::commits, 1.7},
  {"parts not written", &job_tally::parts_failed, 0.075},
  {"logs not written", &job_tally::logs_broken, 0.003},
  {"jobs completed", &job_tally::completed, 0.88}, // Limits of restarts end one in twelve.
  {"shards restored", &job_tally::restores, 0.22},
  {"shards recovered", &job_tally::recoveries, 0.1},
  {"checkpoints unreadable", &job_tally::unreadable, 0.006},
  {"shards restarted", &job_tally::starts_over, 0.15},
  {"workers as backups", &job_tally::backups, 0.03},
  {"workers evicted", &job_tally::evictions, 0.02},
  {"batches shared", &job_tally::shared, 0.04},
  {"histories with reducers", &job_tally::reduced, 0.2},
  {"pushes summed", &job_tally::sums, 0.1, has_single_pushes},
  {"pulls shared", &job_tally::pulls_shared, 0.1},
  {"workers left out", &job_tally::left_out, 0.1},
  {"histories with stages", &job_tally::staged, 0.2},
  {"faults of stages", &job_tally::stage_faults, 1},
  {"pushes gathered", &job_tally::gathered, 0.5, has_single_pushes},
  {"histories with lines", &job_tally::lines, 0.15, has_single_pushes},
  {"parts killed", &job_tally::part_kills, 0.4, has_single_pushes},
  {"partial pushes", &job_tally::partial_pushes, 40, has_single_pushes},
  {"batches begun anew", &job_tally::attempts_again, 0.05, has_single_pushes},
  {"batches that lines dropped", &job_tally::dropped_by_lines, 0.05, has_single_pushes},
  {"jobs stopped", &job_tally::stops, 0.01, has_single_pushes},
  {"sums not as one", &job_tally::sum_not_applicable, 0.01, has_single_pushes},
};

job_world::job_world(std::uint64_t seed, bool no_faults, trace_function trace)
    : world(seed, no_faults, std::move(trace)), options_(draw_job(random_, no_faults)) {
  options_.apply_batch = seed % 3 == 0 ? 4 : 1;
  // By the seed and not by a draw, so that all other histories stay as they were.
  if (seed % jobs_per_line == 2)
    make_lines(options_, seed / jobs_per_line % 2 == 0 ? 2 : line_parts_max);
  fingerprint_ = fingerprint(job());
  loss_ = intensity(0.1);
  repetition_ = intensity(0.06);
  delay_us_max_ = pick(200, 40'000);
  overtaking_ = chance(0.5);
  worker_kill_rate_ = intensity(3.0);
  server_kill_rate_ = intensity(2.0);
  coordinator_kill_rate_ = intensity(1.5);
  pause_rate_ = intensity(3.0);
  cut_rate_ = intensity(3.0);
  resize_rate_ = intensity(1.5);
  slow_disk_ = intensity(0.5);
  part_failure_ = intensity(0.2);
  unreadable_ = intensity(2.0);
  slow_store_ = intensity(0.3);
  link_breaks_ = intensity(0.01);
  wiped_ = intensity(1.0);
  const double share_here = chance(0.5) ? 1.0 : chance(0.5) ? 0.5 : 0.0;
  connections_seen_ = chance(0.5) ? 1.0 : 0.5;
  start_failure_ = intensity(0.3);
  full_log_ = intensity(0.1);
  faults_end_ = pick_ms(3000, 6000);
  dies_together_ = options_.resume;
  if (!no_faults && chance(hanging_jobs))
    hang_at_ = pick_ms(500, 3000);
  if (const auto number = seed / jobs_per_stop; seed % jobs_per_stop == 5)
    stop_at_ = number % 4 == 0 ? faults_end_ / 2
                               : faults_end_ + static_cast<int>(number % 20) * stop_interval;
  here_.insert({role::coordinator, 0});
  for (const auto& who : first_processes())
    if (chance(share_here))
      here_.insert(who);
  if (!no_faults && seed % jobs_per_crash == 3)
    draw_crashes();
  if (has_lines())
    part_kill_rate_ = intensity(3.0);
}

job_world::~job_world() = default;

void job_world::run() {
  tally_.reduced = options_.workers_per_process > 1 ? 1 : 0;
  tally_.staged = options_.has_stage ? 1 : 0;
  tally_.lines = has_lines() ? 1 : 0;
  start_launcher();
  if (hang_at_)
    at(*hang_at_, [this] { hang_someone(); });
  for (time_point t = fault_interval; t < faults_end_; t += fault_interval)
    at(t, [this] { inject_faults(); });
  at(faults_end_, [this] { heal(); });
  while (!has_ended() && now_ < faults_end_ + quiet_time && step()) {
  }
  tally_.events = events();
  check_end();
}

bool job_world::has_ended() const { return launcher_->end.has_value(); }

// -- processes ----------------------------------------------------------------------------------

job_world::process* job_world::find(const member_id& who) {
  if (auto* const one = find_server(who))
    return one;
  if (auto* const one = find_worker(who))
    return one;
  if (auto* const one = find_worker_process(who))
    return one;
  if (coordinator_ && who == coordinator_->id)
    return coordinator_.get();
  if (who == launcher_->id)
    return launcher_.get();
  const auto found = commands_.find(who);
  return found == commands_.end() ? nullptr : &found->second;
}

job_world::server* job_world::find_server(const member_id& who) {
  const auto found = servers_.find(who.index);
  return found != servers_.end() && found->second->id == who ? found->second.get() : nullptr;
}

job_world::worker* job_world::find_worker(const member_id& who) {
  const auto found = workers_.find(who.index);
  return found != workers_.end() && found->second->id == who ? found->second.get() : nullptr;
}

void job_world::when_awake(const member_id& who, time_point when, std::function<void()> what) {
  at(when, [this, who, what = std::move(what)] {
    const auto* const awake = find(who);
    if (awake == nullptr)
      return;
    if (now_ < awake->paused_until)
      when_awake(who, awake->paused_until, what);
    else
      what();
  });
}

/// Calls `what` at intervals of the process's own clock.
void job_world::every(const member_id& who, milliseconds interval, std::function<void()> what) {
  const auto* const by = find(who);
  if (by == nullptr)
    return;
  const auto span = std::chrono::duration<double, std::nano>(interval) / by->rate;
  when_awake(who, now_ + std::chrono::duration_cast<time_point>(span),
             [this, who, interval, what = std::move(what)] {
               what();
               every(who, interval, what);
             });
}

time_point job_world::local(const process& of) const {
  return time_point{static_cast<std::int64_t>(static_cast<double>(now_.count()) * of.rate)};
}

void job_world::later(const server& by, const hosted& at, time_point when,
                      std::function<void(server&, hosted&)> what) {
  when_awake(by.id, when, [this, who = by.id, shard = at.host.shard(), what = std::move(what)] {
    auto& mine = *find_server(who);
    what(mine, mine.chains.at(shard));
  });
}

process_name job_world::home_of(const member_id& who) const {
  return {who.role, who.role == role::worker ? group_of(who.index).front() : who.index};
}

std::vector<process_name> job_world::first_processes() const {
  std::vector<process_name> all;
  for (std::uint32_t i = 0; i < job().servers; ++i)
    all.push_back({role::server, i});
  for (std::uint32_t i = 0; i < job().workers + job().backup_workers;
       i += options_.workers_per_process)
    all.push_back({role::worker, i});
  return all;
}

bool job_world::runs(process_name who) const {
  switch (who.role) {
  case role::server: return servers_.contains(who.index);
  case role::worker: return worker_processes_.contains(who.index / options_.workers_per_process);
  case role::coordinator: return coordinator_ != nullptr;
  case role::actor: // No simulated job has them.
  case role::observer: break;
  }
  return false;
}

incarnation_id job_world::start(process_name who) {
  switch (who.role) {
  case role::server: return start_server(who.index);
  case role::worker: return start_workers(who.index);
  case role::coordinator:
    start_coordinator(std::exchange(resume_next_, false));
    return coordinator_->id.incarnation;
  case role::actor: // No simulated job has them.
  case role::observer: break;
  }
  assert(false); // start_launcher() starts it.
  return {};
}

incarnation_id job_world::start_server(std::uint32_t index) {
  auto& fresh = servers_[index] = std::make_unique<server>();
  fresh->id = member_of(server_id{index}, next_incarnation());
  fresh->rate = pick_rate();
  if (is_traced())
    note(full_name(fresh->id) + " starts");
  every(fresh->id, 50ms, [this, who = fresh->id] { act(*find_server(who)); });
  send_report(*fresh);
  return fresh->id.incarnation;
}

incarnation_id job_world::start_workers(std::uint32_t first) {
  const auto all = group_of(first);
  auto& home = worker_processes_[first / options_.workers_per_process];
  home = std::make_unique<worker_process>(options_, incarnations_ + 1);
  home->first = next_incarnation();
  incarnations_ += all.size() - 1;
  home->id = member_of(worker_id{first}, next_incarnation());
  home->rate = pick_rate();
  for (const auto index : all)
    start_worker(*home, index);
  return home->first;
}

void job_world::start_worker(const worker_process& home, std::uint32_t index) {
  auto& fresh = workers_[index] = std::make_unique<worker>(options_);
  fresh->id = member_of(worker_id{index}, {home.first.value + (index - home.id.index)});
  fresh->rate = home.rate;
  fresh->step_ms = static_cast<int>(index < options_.slow_workers ? pick(100, 200) : pick(2, 25));
  fresh->idle_since = local(*fresh);
  if (is_traced())
    note(full_name(fresh->id) + " starts");
  every(fresh->id, 20ms, [this, who = fresh->id] { act(*find_worker(who)); });
  for (std::uint32_t i = 1; i < options_.line_parts; ++i)
    start_part(index, {i});
  send_report(*fresh);
}

/// Starts a process of another host, unless the job has ended by then. A server that is leaving the
/// job starts once it stays.
void job_world::start_elsewhere(process_name who, time_point when) {
  at(when, [this, who, run = launcher_->id] {
    if (launcher_->id != run || runs(who) || is_here(who))
      return;
    if (launcher_->wants(who))
      start(who);
    else if (launcher_->phase() < job_phase::finished && !launcher_->sent_away)
      start_elsewhere(who, now_ + restart_pause_elsewhere);
  });
}

/// Draws the time from the end of a process to the start of the next one.
milliseconds job_world::absence_of(role of) {
  const bool is_long = of == role::server ? chance(0.1) : of == role::coordinator && chance(0.2);
  const auto longest = of == role::server ? absence_long_ms : coordinator_absence_long_ms;
  return pick_ms(10, is_long ? longest : 400);
}

/// Removes all of a process from the world. Returns the members that it had.
std::vector<member_id> job_world::take_down(process_name who) {
  if (who.role == role::worker)
    return take_down_workers(who.index);
  if (who.role == role::server)
    return {servers_.extract(who.index).mapped()->id};
  coordinator_.reset();
  return {};
}

/// Ends a member that was told to end, for the reason `why` if there is one.
void job_world::end(member_id who, const std::optional<failure>& why) {
  if (is_traced())
    note(full_name(who) + " ends");
  if (who.role == role::worker)
    return end_worker(who, why);
  gone(home_of(who), why);
}

/// Takes down a process that ends as it was told to. Other hosts start it again.
void job_world::gone(process_name who, const std::optional<failure>& why) {
  const auto lost = take_down(who);
  if (coordinator_ && (quiet_ || chance(connections_seen_)))
    disconnect(lost);
  if (!is_here(who)) {
    if (launcher_->phase() < job_phase::finished)
      start_elsewhere(who, now_ + restart_pause_elsewhere);
    return;
  }
  launcher_->heard.push_back({why ? process_word{who, word_kind::hopeless, why->text}
                                  : process_word{who, word_kind::dismissed}});
  hear_end(who, {.number = why ? 1 : 0}, {});
}

/// Tells the coordinator that connections have ended.
void job_world::disconnect(const std::vector<member_id>& lost) {
  for (const auto& dead : lost)
    when_awake(coordinator_->id, now_, [this, dead] {
      coordinate([&](coordinator_effects& effects) {
        coordinator_->decider->disconnected(dead, local(*coordinator_), effects);
      });
    });
}

void job_world::kill(const member_id& who) {
  if (is_traced())
    note(full_name(who) + " is killed");
  const auto home = home_of(who);
  const auto lost = take_down(home); // All that die with it.
  if (who.role == role::server && chance(wiped_))
    std::erase_if(disks_, [&](const auto& x) {
      const bool is_its_own = x.first.first == who.index;
      if (is_its_own)
        wiped_disks_.insert(x.first);
      return is_its_own;
    });
  const bool is_noticed = coordinator_ && chance(connections_seen_);
  if (is_noticed)
    disconnect(lost);
  if (is_here(home))
    return hear_end(home, killed, lost);
  const auto absent = absence_of(who.role);
  start_elsewhere(home, now_ + absent);
  if (coordinator_ && !is_noticed && absent < silence_min)
    ++tally_.unnoticed_restarts;
}

// -- faults -------------------------------------------------------------------------------------

void job_world::inject_faults() {
  if (launcher_->sent_away
      || (coordinator_ && coordinator_->decider->phase() == job_phase::stopped))
    return; // A coordinator that dies now would wait for members that have left.
  const double seconds = std::chrono::duration<double>(fault_interval).count();
  const auto victim = [&](const auto& all) {
    return std::next(all.begin(), static_cast<std::ptrdiff_t>(pick(0, all.size() - 1)))->second->id;
  };
  if (!workers_.empty() && chance(worker_kill_rate_ * seconds)) {
    ++tally_.worker_kills;
    kill(victim(workers_));
  }
  if (!servers_.empty() && chance(server_kill_rate_ * seconds)) {
    ++tally_.server_kills;
    kill(victim(servers_));
  }
  if (coordinator_ && chance(coordinator_kill_rate_ * seconds)) {
    ++tally_.coordinator_kills;
    kill_coordinator();
  }
  if (!parts_.empty() && chance(part_kill_rate_ * seconds))
    kill_part();
  if (chance(pause_rate_ * seconds))
    pause_someone();
  if (chance(cut_rate_ * seconds))
    cut_somewhere();
  if (chance(resize_rate_ * seconds))
    begin_command();
}

void job_world::pause_someone() {
  std::vector<process*> all;
  for (const auto& [unused, each] : servers_)
    all.push_back(each.get());
  for (const auto& [unused, each] : workers_)
    all.push_back(each.get());
  if (coordinator_)
    all.push_back(coordinator_.get());
  if (all.empty())
    return;
  auto& victim = *all[pick(0, all.size() - 1)];
  const auto until = now_ + pick_ms(1, chance(0.5) ? 300 : 2500);
  for (process* const each : all_of_process(victim)) {
    each->paused_until = std::max(each->paused_until, until);
    each->disturbed_until = std::max(each->disturbed_until.value_or(now_), each->paused_until);
  }
  ++tally_.pauses;
  if (is_traced())
    note(full_name(victim.id) + " pauses until "
         + std::to_string(victim.paused_until.count() / 1'000'000) + " ms");
}

void job_world::cut_somewhere() {
  std::vector<place> all{coordinator_place, launcher_place};
  for (const auto& [index, unused] : servers_)
    all.push_back(index);
  for (const auto& [index, unused] : workers_)
    all.push_back(servers_simulated_max + index);
  const auto one = [&] { return chance(0.3) ? coordinator_place : all[pick(0, all.size() - 1)]; };
  const auto from = one();
  const auto to = one();
  const auto until = now_ + pick_ms(100, chance(0.5) ? 500 : 2500);
  make_cut(from, to, {until, chance(0.5)});
  tally_.cuts += from != to ? 1 : 0;
  if (is_traced())
    note("cut between " + std::to_string(from) + " and " + std::to_string(to));
  for (const auto& [index, each] : workers_)
    if (place_of(each->id) == from || place_of(each->id) == to)
      each->disturbed_until = std::max(each->disturbed_until.value_or(now_), until);
}

/// Lets a process of the launcher's host hang that is known to the job.
void job_world::hang_someone() {
  if (launcher_->phase() != job_phase::training)
    return;
  std::vector<process*> all;
  for (const auto& status : launcher_->update()->desired_state.members)
    if (auto* const one = find(status.member); one != nullptr && is_here(home_of(status.member))
                                               && home_of(status.member).index == one->id.index)
      all.push_back(one);
  if (coordinator_ && !coordinator_->saving && chance(hanging_coordinators))
    all = {coordinator_.get()};
  if (all.empty())
    return;
  auto& victim = *all[pick(0, all.size() - 1)];
  for (process* const each : all_of_process(victim)) {
    each->hangs = true;
    each->paused_until = never;
    each->disturbed_until = never;
  }
  ++tally_.hangs;
  if (is_traced())
    note(full_name(victim.id) + " hangs");
}

/// Kills all processes, the launcher too. The user then starts the same job again.
void job_world::everything_dies() {
  ++tally_.resumes;
  note("everything dies");
  kill_coordinator();
  servers_.clear();
  workers_.clear();
  worker_processes_.clear();
  parts_.clear();
  commands_.clear();
  persisted_.servers.clear();
  persisted_.draining.clear();
  resume_next_ = true;
  start_launcher();
}

void job_world::heal() {
  note("quiet from here on");
  quiet_ = true;
  end_cuts();
  if (dies_together_ && launcher_->phase() < job_phase::finished && !launcher_->sent_away
      && !any_failed_)
    everything_dies();
  const auto wake = [&](process& one) {
    if (!one.hangs)
      one.paused_until = std::min(one.paused_until, now_);
  };
  for (const auto& [unused, each] : servers_)
    wake(*each);
  for (const auto& [unused, each] : workers_)
    wake(*each);
  for (const auto& [unused, each] : worker_processes_)
    wake(*each);
  if (coordinator_ && !coordinator_->saving)
    wake(*coordinator_);
}

} // namespace troupe::sim
