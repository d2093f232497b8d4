// Servers: what a loss means, who loads what, what the marks say, and checkpoints.
#include "actors/cluster/coordinator.hpp"

#include <algorithm>

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// Attempts at the last checkpoint before the job fails: its disk is full, most likely.
constexpr std::uint32_t last_failures_max = 5;

std::uint64_t count_missing(const batch_set& before, const batch_set& after) {
  auto both = before;
  both.intersect(after);
  return before.size() - both.size();
}

} // namespace

// -- losses -------------------------------------------------------------------------------------

void coordinator::lose(const member_id& who, const std::string& why, time_point now,
                       coordinator_effects& effects) {
  if (!members_.bury(who))
    return;
  if (who.role == role::worker) {
    const auto before = ledger_.remaining();
    ledger_.lost({who.index});
    workers_.erase(who.index);
    ++roster_;
    if (phase_ != job_phase::stopped)
      tell(name_of(who) + " lost: " + std::to_string(ledger_.remaining() - before)
             + " batches go to others (" + why + ")",
           effects);
    return;
  }
  if (phase_ != job_phase::stopped)
    tell(name_of(who) + " lost (" + why + ")", effects);
  auto& seat = servers_[who.index];
  seat.id.reset();
  forsake(seat, who.index, now, effects);
  seat.report = {};
}

/// The seat's server could not read the checkpoint that it was to restore: an older one has to do.
void coordinator::distrust(server_state& seat, const member_id& who, const server_report& body,
                           time_point now, coordinator_effects& effects) {
  if (seat.assignment == 0 || seat.serving || seat.restore != body.unreadable)
    return; // It answers older orders.
  tell(name_of(who) + " cannot restore, an older checkpoint is looked for: " + body.failed,
       effects);
  if (std::find(unreadable_.begin(), unreadable_.end(), body.unreadable) == unreadable_.end())
    unreadable_.push_back(body.unreadable);
  forsake(seat, who.index, now, effects);
}

/// The seat's partitions are gone.
void coordinator::forsake(server_state& seat, std::uint32_t index, time_point now,
                          coordinator_effects& effects) {
  const bool loaded = seat.assignment != 0;
  if (seat.serving)
    seat.lost_marks = seat.report.marks;
  seat.serving = seat.adopted = false;
  seat.assignment = 0;
  if (!loaded || phase_ == job_phase::stopped)
    return;
  seat.started = true;
  restore_.reset();
  if (schedule_.cutting())
    schedule_.abandon(now);
  if (!bsp_ || recovering_)
    return;
  if (!frozen_) {
    blamed_ = index;
    acknowledged_ = ledger_.acknowledged();
    acknowledged_.unite(seat.lost_marks);
  }
  roll_all_back(now, effects);
}

/// bsp: every server goes back to the same clock, in a new generation.
void coordinator::roll_all_back(time_point now, coordinator_effects& effects) {
  ++state_.generation.value;
  persist(effects);
  frozen_ = true;
  for (auto& [index, seat] : servers_) {
    seat.serving = seat.adopted = false;
    seat.assignment = 0;
    seat.started = true;
  }
  for (auto& [index, worker] : workers_)
    worker.start_clock = 0; // A worker's clock begins anew with a generation.
  if (schedule_.cutting())
    schedule_.abandon(now);
}

// -- assignments --------------------------------------------------------------------------------

void coordinator::place_servers(coordinator_effects& effects) {
  bool waiting = false;
  for (auto& [index, seat] : servers_) {
    if (seat.assignment != 0)
      continue;
    if (seat.started)
      waiting = true; // Also for one that is still to come: verifying takes its time.
    else if (seat.id)
      assign(seat, 0);
  }
  if (!waiting)
    return;
  if (!options_.checkpoints)
    restore_ = 0;
  if (!restore_) {
    // What is being committed may be the newest by then, and make an older one disappear.
    if (!finding_ && !schedule_.committing()) {
      finding_ = true;
      effects.push_back(find_checkpoint_effect{unreadable_});
    }
    return;
  }
  for (auto& [index, seat] : servers_) {
    if (seat.id && seat.assignment == 0)
      assign(seat, *restore_);
  }
}

void coordinator::assign(server_state& seat, std::uint64_t restore) {
  seat.assignment = next_assignment_++;
  seat.restore = restore;
  seat.numbered = true;
}

/// After a restart: a server that runs an assignment of an earlier term goes on with it.
bool coordinator::adopt(server_state& seat) const {
  const auto number = seat.report.assignment;
  if (seat.assignment != 0 || seat.numbered || !seat.started || number == 0
      || (number >> 32) >= state_.term || seat.report.generation != state_.generation)
    return false;
  seat.assignment = number;
  seat.adopted = true;
  return true;
}

void coordinator::begin_serving(server_state& seat, std::uint32_t index,
                                coordinator_effects& effects) {
  seat.serving = true;
  marks_changed_ = audit_needed_ = true;
  if (seat.started && !seat.adopted && !bsp_) {
    auto before = ledger_.acknowledged();
    before.unite(seat.lost_marks);
    count_rolled_back(seat, index, before, seat.report.marks, effects);
  }
  seat.started = true;
}

void coordinator::count_rolled_back(server_state& seat, std::uint32_t index,
                                    const batch_set& before, const batch_set& after,
                                    coordinator_effects& effects) {
  const auto count = count_missing(before, after);
  seat.rolled_back += count;
  seat.lost_marks = {};
  const auto from = seat.restore == 0
                      ? std::string{" started over: "}
                      : " restored from checkpoint " + std::to_string(seat.restore) + ": ";
  tell("server " + std::to_string(index) + from + std::to_string(count) + " updates rolled back",
       effects);
}

// -- marks --------------------------------------------------------------------------------------

void coordinator::compare_marks(time_point now, coordinator_effects& effects) {
  if (!marks_changed_ || !all_serving())
    return;
  marks_changed_ = false;
  if (frozen_) {
    begin_generation(now, effects);
    return;
  }
  if (!audit_needed_) {
    ledger_.settle(common_marks());
    return;
  }
  audit_needed_ = false;
  audited_at_ = now;
  if (const auto count = ledger_.audit(common_marks(), false); count > 0)
    tell(std::to_string(count) + " batches will be done again", effects);
}

void coordinator::begin_generation(time_point now, coordinator_effects& effects) {
  const auto marks = common_marks();
  frozen_ = audit_needed_ = false;
  ledger_.roll_back(marks);
  if (blamed_)
    count_rolled_back(servers_[*blamed_], *blamed_, acknowledged_, marks, effects);
  blamed_.reset();
  for (auto& [index, seat] : servers_)
    seat.lost_marks = {};
  schedule_.restart(position(), now);
  audited_at_ = now;
  tell("all servers go on from clock " + std::to_string(clocks_of(marks)) + " (generation "
         + std::to_string(state_.generation.value) + ")",
       effects);
}

/// Finished batches whose marks do not come: an acknowledgement that was lost with its server.
void coordinator::audit_overdue(time_point now, coordinator_effects& effects) {
  if (recovering_ || frozen_ || !all_serving() || phase_ == job_phase::stopped) {
    audited_at_ = now;
    return;
  }
  if (now - audited_at_ < options_.audit_grace)
    return;
  audited_at_ = now;
  if (const auto count = ledger_.audit(common_marks(), true); count > 0)
    tell(std::to_string(count) + " batches without marks will be done again", effects);
}

batch_set coordinator::common_marks() const {
  auto common = servers_.begin()->second.report.marks;
  for (const auto& [index, seat] : servers_)
    common.intersect(seat.report.marks);
  return common;
}

bool coordinator::all_serving() const {
  return std::all_of(servers_.begin(), servers_.end(),
                     [](const auto& entry) { return entry.second.serving; });
}

// -- checkpoints --------------------------------------------------------------------------------

std::uint64_t coordinator::clocks_of(const batch_set& marks) const {
  return marks.floor().value >= job_.batches() ? bsp_clock_count(job_)
                                               : bsp_clock(job_, marks.floor());
}

checkpoint_schedule::position coordinator::position() const {
  checkpoint_schedule::position where{ledger_.settled(), 0};
  for (const auto& [index, seat] : servers_) {
    if (bsp_ && seat.serving)
      where.clock = std::max(where.clock, clocks_of(seat.report.marks));
  }
  return where;
}

void coordinator::run_checkpoints(time_point now, coordinator_effects& effects) {
  if (!options_.checkpoints)
    return;
  if (schedule_.cutting())
    collect_parts(now, effects);
  if (!all_serving() || frozen_)
    return;
  schedule_.observe(position(), now);
  if (phase_ == job_phase::training && schedule_.due(position(), now))
    schedule_.begin(position(), now, true);
}

void coordinator::collect_parts(time_point now, coordinator_effects& effects) {
  if (schedule_.overdue(now)) {
    checkpoint_failed("it took too long", now, effects);
    return;
  }
  for (const auto& [index, seat] : servers_) {
    if (seat.report.checkpoint_failed == schedule_.number()) {
      checkpoint_failed(seat.report.checkpoint_failure, now, effects);
      return;
    }
    if (!seat.serving || seat.report.part.server.value != index || !schedule_.add(seat.report.part))
      continue;
    effects.push_back(
      commit_checkpoint_effect{{schedule_.number(), job_, state_.generation, schedule_.clock(),
                                ledger_.cursor(), schedule_.parts()}});
    return;
  }
}

void coordinator::checkpoint_failed(const std::string& why, time_point now,
                                    coordinator_effects& effects) {
  const auto number = schedule_.number();
  schedule_.fail(now);
  tell("checkpoint " + std::to_string(number) + " failed: " + why, effects);
  if (number == last_checkpoint_ && ++last_failures_ >= last_failures_max && !stop_deadline_)
    fail("the last checkpoint cannot be written: " + why, effects);
}

// -- the view -----------------------------------------------------------------------------------

void coordinator::refresh_view() {
  view next{view_.epoch, state_.generation, {}, state_.chain_of};
  for (const auto& [index, seat] : servers_) {
    if (seat.id)
      next.servers.push_back({{index}, seat.id->incarnation, seat.report.address, seat.serving});
    else
      next.servers.push_back({{index}, {}, {}, false});
  }
  if (next == view_)
    return;
  view_ = std::move(next);
  // Like all numbers of a coordinator it begins with the term.
  view_.epoch.value = std::max(view_.epoch.value + 1, (state_.term << 32) + 1);
}

} // namespace troupe
