#include "cli/chaos/conductor.hpp"

#include "cli/chaos/damage.hpp"

#include "fmt/format.h"

#include <signal.h>

#include <utility>

namespace troupe::chaos {

namespace {

double seconds_of(std::chrono::milliseconds x) { return std::chrono::duration<double>(x).count(); }

bool is_kill(fault_kind kind) {
  return kind == fault_kind::kill_server || kind == fault_kind::kill_worker
         || kind == fault_kind::kill_actor || kind == fault_kind::kill_coordinator;
}

} // namespace

conductor::conductor(double seconds, cluster& job, run_facts& run,
                     std::function<void(const std::string&)> tell)
    : seconds_(seconds), job_(job), run_(run), tell_(std::move(tell)), plan_(run.asked),
      next_(plan_.next()) {}

result<void> conductor::step(double now) {
  if (!began_) {
    if (run_.progress.empty() || run_.progress.back().phase != "training")
      return {};
    began_ = quiet_since_ = now;
  }
  if (current_ && now < current_->record.ended) {
    if (current_->record.what.kind == fault_kind::full_disk)
      fill_disk(job_.checkpoints()); // Servers remove files meanwhile.
    return {};
  }
  if (current_)
    return finish(now);
  over_ = over_ || !next_ || now >= *began_ + seconds_ || run_.progress.back().phase != "training";
  return !over_ && is_time(now) ? begin(now) : result<void>{};
}

bool conductor::is_time(double now) {
  if (now < quiet_since_ + seconds_of(next_->pause))
    return false;
  if (run_.whole_since(quiet_since_))
    return true;
  return now >= quiet_since_ + run_.heal_limit;
}

result<void> conductor::begin(double now) {
  auto begun = carry_out(*next_, now);
  if (!begun)
    return begun.error();
  if (!*begun)
    return {}; // The victim is being started again, for example; a later step tries again.
  (*begun)->record.overlaps = !run_.whole_since(quiet_since_);
  tell_(text_of((*begun)->record));
  if (next_->lasts.count() == 0)
    run_.faults.push_back((*begun)->record);
  else
    current_ = **begun;
  quiet_since_ = now;
  next_ = plan_.next();
  return {};
}

result<std::optional<conductor::open_fault>> conductor::carry_out(const planned_fault& what,
                                                                  double now) {
  open_fault made{{what, now, now + seconds_of(what.lasts)}, 0};
  if (is_kill(what.kind))
    return send(SIGKILL, made);
  if (is_cut(what.kind)) {
    if (auto cut = job_.cut(what.whom.index, what.kind); !cut)
      return cut.error();
    return std::optional{made};
  }
  if (what.kind == fault_kind::full_disk) {
    fill_disk(job_.checkpoints());
    return std::optional{made};
  }
  if (what.kind != fault_kind::flip)
    return send(SIGSTOP, made);
  if (run_.replicas == 1 && !job_.find(what.whom))
    return std::optional<open_fault>{};
  auto flipped = flip_bit(job_.checkpoints(), run_.flips, what.dice);
  if (!flipped)
    return std::optional<open_fault>{};
  flipped->at = now;
  run_.flips.push_back(*flipped);
  if (run_.replicas == 1) // The state that it held then has to come from a checkpoint.
    send(SIGKILL, made);
  return std::optional{made};
}

std::optional<conductor::open_fault> conductor::send(int signal, open_fault what) {
  const auto process = job_.find(what.record.what.whom);
  if (!process || ::kill(*process, signal) != 0)
    return std::nullopt;
  what.stopped = *process;
  return what;
}

result<void> conductor::finish(double now) {
  auto [record, stopped] = *std::exchange(current_, std::nullopt);
  record.ended = quiet_since_ = now;
  const auto& what = record.what;
  run_.faults.push_back(record);
  if (is_cut(what.kind))
    return job_.mend(what.whom.index, what.kind);
  if (what.kind == fault_kind::full_disk)
    free_disk(job_.checkpoints());
  else if (job_.find(what.whom) == stopped) // The launcher kills a process that hangs for long.
    ::kill(stopped, SIGCONT);
  return {};
}

void conductor::close(double now) {
  if (!current_)
    return;
  current_->record.ended = now;
  run_.faults.push_back(std::exchange(current_, std::nullopt)->record);
}

std::string conductor::text_of(const fault_record& what) const {
  const bool kill = is_kill(what.what.kind);
  auto text = kill ? "kill " + to_string(what.what.whom) : std::string{name_of(what.what.kind)};
  if (what.what.kind == fault_kind::flip)
    text +=
      fmt::format(" in {} of checkpoint {}", run_.flips.back().file, run_.flips.back().checkpoint);
  if (!kill && what.what.kind != fault_kind::full_disk
      && (what.what.kind != fault_kind::flip || run_.replicas == 1))
    text += (what.what.kind == fault_kind::flip ? ", kill " : ": ") + to_string(what.what.whom);
  if (what.what.lasts.count() > 0)
    text += fmt::format(" for {:.1f} s", seconds_of(what.what.lasts));
  return text;
}

} // namespace troupe::chaos
