// The simulated job: processes, faults, and the end.
#include "cli/sim/job_world_parts.hpp"

namespace troupe::sim {
namespace {

/// Interval at which the rates below are applied.
constexpr milliseconds fault_interval = 10ms;
constexpr std::uint64_t absence_long_ms = 4000;
/// No member is missed sooner.
constexpr time_point silence_min = 1300ms;
/// The user stops one of this number of jobs: some among faults, the others when all is quiet.
constexpr std::uint64_t jobs_per_stop = 8;
constexpr time_point stop_interval = 50ms;

bool may_read_anywhere(std::size_t kind) { return !simulated_modes[kind].bounded_lead; }
bool has_single_pushes(std::size_t kind) { return !simulated_modes[kind].clock_updates; }

} // namespace

const std::vector<minimum<job_tally>> job_world::minima{
  {"entries applied", &job_tally::applied, 100},
  {"pushes repeated", &job_tally::repeated, 3},
  {"pulls answered", &job_tally::answered, 225},
  {"... by any replica", &job_tally::answered_anywhere, 25, may_read_anywhere},
  {"workers killed", &job_tally::worker_kills, 1.3},
  {"servers killed", &job_tally::server_kills, 0.9},
  {"restarts unnoticed", &job_tally::unnoticed_restarts, 0.15},
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
  {"jobs completed", &job_tally::completed, 0.97},
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
  {"jobs stopped", &job_tally::stops, 0.01, has_single_pushes},
  {"sums not as one", &job_tally::sum_not_applicable, 0.01, has_single_pushes},
};

job_world::job_world(std::uint64_t seed, bool no_faults, trace_function trace)
    : world(seed, no_faults, std::move(trace)), options_(draw_job(random_, no_faults)) {
  options_.apply_batch = seed % 3 == 0 ? 4 : 1;
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
  deaths_seen_ = chance(0.5) ? 1.0 : chance(0.5) ? 0.5 : 0.0;
  connections_seen_ = chance(0.5) ? 1.0 : 0.5;
  faults_end_ = pick_ms(3000, 6000);
  dies_together_ = options_.resume;
  if (const auto number = seed / jobs_per_stop; seed % jobs_per_stop == 5)
    stop_at_ = number % 4 == 0 ? faults_end_ / 2
                               : faults_end_ + static_cast<int>(number % 20) * stop_interval;
  launcher_ = std::make_unique<process>();
  launcher_->id = {role::observer, 0, next_incarnation()};
  for (std::uint32_t i = 0; i < job().servers; ++i)
    start_server(i);
  for (std::uint32_t i = 0; i < job().workers + job().backup_workers; ++i)
    start_worker(i);
}

job_world::~job_world() = default;

void job_world::run() {
  tally_.reduced = options_.workers_per_process > 1 ? 1 : 0;
  tally_.staged = options_.has_stage ? 1 : 0;
  start_coordinator(false);
  every(launcher_->id, report_interval, [this] { observe(); });
  for (time_point t = fault_interval; t < faults_end_; t += fault_interval)
    at(t, [this] { inject_faults(); });
  at(faults_end_, [this] { heal(); });
  while (!has_ended() && now_ < faults_end_ + quiet_time && step()) {
  }
  tally_.events = events();
  check_end();
}

bool job_world::has_ended() const {
  if (has_failed_)
    return true;
  return coordinator_ && coordinator_->decider->phase() == job_phase::stopped && servers_.empty()
         && workers_.empty();
}

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

void job_world::start_server(std::uint32_t index) {
  auto& fresh = servers_[index] = std::make_unique<server>();
  fresh->id = member_of(server_id{index}, next_incarnation());
  fresh->rate = pick_rate();
  if (is_traced())
    note(full_name(fresh->id) + " starts");
  every(fresh->id, 50ms, [this, who = fresh->id] { act(*find_server(who)); });
  send_report(*fresh);
}

void job_world::start_worker(std::uint32_t index) {
  auto& home = worker_processes_[index / options_.workers_per_process];
  if (!home) {
    const auto incarnation = next_incarnation();
    home = std::make_unique<worker_process>(options_, incarnation.value);
    home->id = member_of(worker_id{group_of(index).front()}, incarnation);
    home->rate = pick_rate();
  }
  auto& fresh = workers_[index] = std::make_unique<worker>(options_);
  fresh->id = member_of(worker_id{index}, next_incarnation());
  fresh->rate = home->rate;
  fresh->step_ms = static_cast<int>(index < options_.slow_workers ? pick(100, 200) : pick(2, 25));
  fresh->idle_since = local(*fresh);
  if (is_traced())
    note(full_name(fresh->id) + " starts");
  every(fresh->id, 20ms, [this, who = fresh->id] { act(*find_worker(who)); });
  send_report(*fresh);
}

void job_world::start_again(const member_id& who, time_point when) {
  starting_.insert(who);
  at(when, [this, who] {
    if (starting_.erase(who) == 0 || told_to_stop_)
      return;
    if (who.role == role::server && !servers_.contains(who.index))
      start_server(who.index);
    if (who.role == role::worker && !workers_.contains(who.index))
      start_worker(who.index);
  });
}

/// Ends a process that decided to end.
void job_world::end(member_id who) {
  if (is_traced())
    note(full_name(who) + " ends");
  if (who.role == role::worker)
    return end_worker(who);
  servers_.erase(who.index);
  if (!told_to_stop_ && phase_seen_ < job_phase::finished && slots_.contains(who.index))
    start_again(who, now_ + 50ms);
}

void job_world::kill(const member_id& who) {
  time_point absent;
  std::vector members{who}; // All that die with it.
  if (is_traced())
    note(full_name(who) + " is killed");
  if (who.role == role::server) {
    servers_.erase(who.index);
    if (chance(wiped_))
      std::erase_if(disks_, [&](const auto& x) {
        const bool is_its_own = x.first.first == who.index;
        if (is_its_own)
          wiped_disks_.insert(x.first);
        return is_its_own;
      });
    absent = pick_ms(10, chance(0.1) ? absence_long_ms : 400);
  } else {
    members = kill_workers(who);
    absent = pick_ms(10, 400);
  }
  for (const auto& each : members)
    start_again(each, now_ + absent);
  bool is_noticed = coordinator_ && chance(connections_seen_);
  for (std::size_t i = 0; is_noticed && i < members.size(); ++i)
    when_awake(coordinator_->id, now_, [this, lost = members[i]] {
      coordinate([&](coordinator_effects& effects) {
        coordinator_->decider->disconnected(lost, local(*coordinator_), effects);
      });
    });
  if (chance(deaths_seen_)) { // Otherwise the death is not seen: a process of another host.
    for (const auto& each : members)
      deaths_.push_back({each});
    is_noticed = true;
  }
  if (coordinator_ && !is_noticed && absent < silence_min)
    ++tally_.unnoticed_restarts;
}

// -- faults -------------------------------------------------------------------------------------

void job_world::inject_faults() {
  if (coordinator_ && coordinator_->decider->phase() == job_phase::stopped)
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

/// Kills all processes, the launcher too. The user then starts the same job again.
void job_world::everything_dies() {
  ++tally_.resumes;
  note("everything dies");
  kill_coordinator();
  servers_.clear();
  workers_.clear();
  worker_processes_.clear();
  starting_.clear();
  commands_.clear();
  deaths_.clear();
  slots_.clear();
  launcher_->id.incarnation = next_incarnation();
  launcher_->last_desired = {};
  every(launcher_->id, report_interval, [this] { observe(); });
  persisted_.servers.clear();
  persisted_.draining.clear();
  resume_next_ = true;
  for (std::uint32_t i = 0; i < job().servers; ++i)
    start_server(i);
  for (std::uint32_t i = 0; i < job().workers + job().backup_workers; ++i)
    start_worker(i);
}

void job_world::heal() {
  note("quiet from here on");
  quiet_ = true;
  end_cuts();
  if (dies_together_ && phase_seen_ < job_phase::finished && !told_to_stop_)
    everything_dies();
  for (const auto& [unused, each] : servers_)
    each->paused_until = std::min(each->paused_until, now_);
  for (const auto& [unused, each] : workers_)
    each->paused_until = std::min(each->paused_until, now_);
  for (const auto& [unused, each] : worker_processes_)
    each->paused_until = std::min(each->paused_until, now_);
  if (coordinator_ && !coordinator_->saving)
    coordinator_->paused_until = std::min(coordinator_->paused_until, now_);
}

} // namespace troupe::sim
