// A stage on the way from workers to the router, behind its guard. Some mistakes of a stage are
// planted here; the guard has to notice each of them.
#include "cli/sim/job_world_parts.hpp"

#include "actors/protocol/mutation.hpp"
#include "actors/protocol/worker/fault_stage.hpp"

namespace troupe::sim {
namespace {

/// Passes requests on. With a planted mistake, it makes that from the third push on.
class simulated_stage final : public pass_through {
public:
  void ask(request_token from, request what, time_point now, stage_effects& effects) override {
    const bool is_due = what.push && ++pushes_ >= 3;
    if (held_) { // The older request goes after the newer one.
      auto [token, older] = *std::exchange(held_, std::nullopt);
      pass_through::ask(from, std::move(what), now, effects);
      pass_through::ask(token, std::move(older), now, effects);
    } else if (is_due && !what.pull && mutated(mutation::stage_reorders)) {
      held_.emplace(from, std::move(what));
    } else if (is_due && !what.pull && mutated(mutation::stage_swallows)) {
      effects.answer(from, {push_reply{}, {}});
    } else {
      if (is_due && mutated(mutation::stage_doubles))
        effects.forward(what);
      if (is_due && mutated(mutation::stage_renames))
        what.push->step.batch.value += 1;
      pass_through::ask(from, std::move(what), now, effects);
    }
  }

private:
  int pushes_ = 0;
  std::optional<std::pair<request_token, request>> held_;
};

} // namespace

std::unique_ptr<stage_decider> make_stage(const job_options& how, std::uint64_t seed) {
  if (how.stage_faults)
    return make_fault_stage(*how.stage_faults, seed);
  return std::make_unique<simulated_stage>();
}

void job_world::ask(worker_process& by, const member_id& responder, request_token token,
                    request what) {
  by.responders.emplace(token, responder);
  if (!by.stage)
    return pass_on(by, token, std::move(what));
  guard(by,
        [&](guard_effects& effects) { by.stage->ask(token, std::move(what), local(by), effects); });
}

void job_world::guard(worker_process& by, const std::function<void(guard_effects&)>& what) {
  guard_effects effects;
  what(effects);
  const auto who = by.id;
  for (auto& effect : effects) {
    if (find_worker_process(who) == nullptr)
      return;
    if (auto* const next = std::get_if<forward_effect>(&effect))
      pass_on(by, {next->number.value}, std::move(next->what));
    else if (const auto* const good = std::get_if<answered_effect>(&effect))
      answered(by, good->request);
    else if (const auto* const bad = std::get_if<failed_effect>(&effect))
      failed(by, bad->request, bad->why);
    else if (const auto* const counted = std::get_if<count_effect>(&effect))
      tally_.stage_faults += counted->count;
  }
  if (find_worker_process(who) == nullptr || !by.stage)
    return;
  const auto next = by.stage->next_tick();
  if (!next || (by.stage_tick && *by.stage_tick <= *next))
    return;
  by.stage_tick = next;
  const auto wait = std::max(*next - local(by), time_point{0}) + 1ms; // Clocks run at other rates.
  when_awake(who, now_ + wait, [this, who] {
    auto& mine = *find_worker_process(who);
    mine.stage_tick.reset();
    guard(mine, [&](guard_effects& more) { mine.stage->tick(local(mine), more); });
  });
}

void job_world::run(worker_process& by, answered_effect& effect) {
  if (!by.reduces)
    return reached(by, effect);
  reduce(by, [&](reducer_effects& effects) {
    by.reduces->answered({effect.request.value}, effect.answer, effects);
  });
}

void job_world::run(worker_process& by, failed_effect& effect) {
  if (!by.reduces)
    return reached(by, effect);
  reduce(by, [&](reducer_effects& effects) {
    by.reduces->failed({effect.request.value}, effect.why, effects);
  });
}

/// Takes an answer of the router, or of the reducer if there is one.
void job_world::reached(worker_process& by, const answered_effect& effect) {
  if (!by.stage)
    return answered(by, effect.request);
  guard(by, [&](guard_effects& effects) {
    by.stage->answered({effect.request.value}, effect.answer, local(by), effects);
  });
}

void job_world::reached(worker_process& by, const failed_effect& effect) {
  if (!by.stage)
    return failed(by, effect.request, effect.why);
  guard(by, [&](guard_effects& effects) {
    by.stage->failed({effect.request.value}, effect.why, local(by), effects);
  });
}

} // namespace troupe::sim
