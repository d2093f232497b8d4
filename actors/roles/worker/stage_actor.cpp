#include "actors/roles/worker/stage_actor.hpp"

#include "actors/effect_runner.hpp"
#include "actors/open_requests.hpp"
#include "actors/protocol/worker/stage_guard.hpp"
#include "actors/tick_timer.hpp"
#include "base/clock.hpp"
#include "base/growing_map.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"
#include "caf/typed_response_promise.hpp"

#include <optional>
#include <utility>

namespace troupe {

namespace {

// The router retries requests after failovers, so only a cluster that is stalled for good exceeds
// this.
constexpr std::chrono::minutes forward_timeout{10};

struct stage_shell {
  using handle = kv::extend<caf::reacts_to<tick_atom>>;
  using pointer = handle::stateful_pointer<stage_shell>;
  using promise = caf::typed_response_promise<reply>;

  stage_shell() = default;

  promise ask(request& what) {
    auto open = self->make_response_promise<reply>();
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
    runner.decide([&](guard_effects& effects) { event(now_of(*self), effects); },
                  [this](auto& effect, guard_effects&) { run(effect); });
    timer.arm(*self, guard->next_tick(), !guard->is_empty());
  }

  void run(forward_effect& effect) {
    requests.send<reply>(
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

static_assert(!std::is_constructible_v<stage_shell, caf::event_based_actor*>);

stage_shell::handle::behavior_type run_stage(stage_shell::pointer self, stage_options options,
                                             std::unique_ptr<stage_decider>& stage, kv next) {
  auto& state = self->state;
  state.self = self;
  state.guard.emplace(options.name, std::move(stage), options.is_program);
  state.options = std::move(options);
  state.next = std::move(next);
  self->set_down_handler([self](caf::down_msg&) { self->quit(); });
  self->monitor(state.next);
  return {
    [&state](request& what) { return state.ask(what); },
    [&state](tick_atom) { state.tick(); },
  };
}

} // namespace

kv spawn_stage(caf::actor_system& system, stage_options options,
               std::unique_ptr<stage_decider> stage, kv next) {
  const bool blocks = options.own_thread;
  // The function that CAF calls once must be copyable, so the stage is shared with it.
  const auto shared = std::make_shared<std::unique_ptr<stage_decider>>(std::move(stage));
  const auto begin = [shared](stage_shell::pointer self, stage_options how, kv to) {
    return run_stage(self, std::move(how), *shared, std::move(to));
  };
  if (blocks)
    return system.spawn<caf::detached>(begin, std::move(options), std::move(next));
  return system.spawn(begin, std::move(options), std::move(next));
}

} // namespace troupe
