// Carries out the effects of a stage_guard, for the actors that run stages.
#pragma once

#include "actors/effect_runner.hpp"
#include "actors/kv.hpp"
#include "actors/open_requests.hpp"
#include "actors/protocol/worker/stage_guard.hpp"
#include "actors/roles/worker/stage_actor.hpp"
#include "actors/tick_timer.hpp"
#include "base/clock.hpp"
#include "base/growing_map.hpp"
#include "base/user_code.hpp"

#include "caf/typed_event_based_actor.hpp"
#include "caf/typed_response_promise.hpp"

#include <memory>
#include <optional>
#include <utility>

namespace troupe {

/// The state of an actor that runs a stage. `Handle`: a kv that also takes tick_atom.
template <class Handle>
struct stage_shell {
  using pointer = typename Handle::pointer;
  using promise = caf::typed_response_promise<reply>;

  stage_shell() = default;
  virtual ~stage_shell() = default;

  /// Called after each event.
  virtual void decided() {}

  void begin(pointer actor, stage_options how, std::unique_ptr<stage_decider> stage, kv to) {
    self = actor;
    guard.emplace(how.name, std::move(stage), how.is_program);
    options = std::move(how);
    next = std::move(to);
    self->monitor(next);
  }

  promise ask(request& what) {
    auto open = self->template make_response_promise<reply>();
    const request_token token{next_token++};
    promises.add(token.value, open);
    decide([&](time_point now, guard_effects& effects) {
      guard->ask(token, std::move(what), now, effects);
    });
    return open;
  }

  void tick() {
    timer.ticked(now_of(*self));
    requests.expire(now_of(*self));
    decide([&](time_point now, guard_effects& effects) { guard->tick(now, effects); });
  }

  template <class Event>
  void decide(Event event) {
    runner.decide(
      [&](guard_effects& effects) {
        std::optional<user_call> here;
        if (options.is_program)
          here.emplace(code_name{"stage", options.name});
        event(now_of(*self), effects);
      },
      [this](auto& effect, guard_effects&) { run(effect); });
    timer.arm(*self, guard->next_tick(), !guard->is_empty());
    decided();
  }

  void run(forward_effect& effect) {
    requests.template send<reply>(
      self, next,
      [this, number = effect.number](reply& answer) {
        decide([&](time_point now, guard_effects& effects) {
          guard->answered(number, std::move(answer), now, effects);
        });
      },
      [this, number = effect.number](const caf::error& why) {
        decide([&](time_point now, guard_effects& effects) {
          guard->failed(number, from_caf(why), now, effects);
        });
      },
      std::move(effect.what));
  }

  void run(answered_effect& effect) { settle(effect.request, std::move(effect.answer)); }
  void run(failed_effect& effect) { settle(effect.request, to_caf(effect.why)); }

  template <class Outcome>
  void settle(request_token token, Outcome outcome) {
    if (auto open = promises.extract(token.value))
      open->deliver(std::move(outcome));
  }

  void run(count_effect& effect) {
    if (options.notes)
      options.notes->count(options.name, effect.name, effect.count);
  }
  void run(log_effect& effect) {
    if (options.notes && options.is_program)
      options.notes->log(options.name, effect.line);
    else if (options.notes)
      options.notes->warn(options.name + ": " + effect.line);
  }
  void run(warning_effect& effect) {
    if (options.notes)
      options.notes->warn(effect.line);
  }

  /// The router retries requests after failovers, so only a cluster that is stalled for good
  /// exceeds this.
  static constexpr std::chrono::minutes forward_timeout{10};

  pointer self = nullptr;
  stage_options options;
  std::optional<stage_guard> guard;
  kv next;
  effect_runner<guard_effect> runner;
  growing_map<promise> promises;
  std::uint64_t next_token = 1;
  open_requests requests{forward_timeout};
  tick_timer timer;

  static inline const char* name = "stage";
};

} // namespace troupe
