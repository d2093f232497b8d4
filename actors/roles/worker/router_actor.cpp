#include "actors/roles/worker/router_actor.hpp"

#include "actors/effect_runner.hpp"
#include "actors/open_requests.hpp"
#include "actors/tick_timer.hpp"
#include "base/clock.hpp"
#include "base/growing_map.hpp"

#include "caf/response_promise.hpp"
#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"
#include "caf/typed_response_promise.hpp"

#include <optional>
#include <utility>

namespace troupe {

namespace {

struct router_shell {
  using handle = router_handle::extend<caf::reacts_to<tick_atom>>;
  using pointer = handle::stateful_pointer<router_shell>;
  using promise = caf::typed_response_promise<reply>;

  router_shell() = default;

  void init(pointer owner, job_spec job, server_connector connector, router_options options) {
    self = owner;
    decider.emplace(std::move(job), options);
    connect = std::move(connector);
  }

  promise ask(request what) {
    auto open = self->make_response_promise<reply>();
    const request_token token{next_token++};
    promises.add(token.value, open);
    decide([&](time_point now, router_effects& effects) {
      decider->ask(token, std::move(what), now, effects);
    });
    return open;
  }

  template <class Event>
  void decide(Event event) {
    runner.decide([&](router_effects& effects) { event(now_of(*self), effects); },
                  [this](auto& effect, router_effects&) { run(effect); });
    timer.arm(*self, decider->next_tick(), !requests.empty());
  }

  void run(send_part_effect& effect) {
    const auto to = handle_of(effect.to.head);
    requests.send<reply>(
      self, to,
      [this, part = effect.part](reply& answer) {
        decide([&](time_point now, router_effects& effects) {
          decider->answered(part, std::move(answer), now, effects);
        });
      },
      [this, part = effect.part, attempt = effect.attempt](const caf::error& why) {
        decide([&](time_point now, router_effects& effects) {
          decider->failed(part, attempt, from_caf(why), now, effects);
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

  /// Returns the handle of a server, which serves all chains that the server leads.
  const kv& handle_of(const member_id& who) {
    auto& known = servers[who.index];
    if (!known.handle || known.whom != who) // An incarnation keeps its address.
      known = {who, connect({who, address_of(listeners, who)})};
    return known.handle;
  }

  void tick() {
    timer.ticked(now_of(*self));
    requests.expire(now_of(*self));
    decide([&](time_point now, router_effects& effects) { decider->tick(now, effects); });
  }

  struct server_handle {
    member_id whom;
    kv handle;
  };

  pointer self = nullptr;
  std::optional<router> decider;
  effect_runner<router_effect> runner;
  server_connector connect;
  std::vector<member_address> listeners;          ///< As they came with the newest view.
  std::map<std::uint32_t, server_handle> servers; ///< By index.
  growing_map<promise> promises;
  std::uint64_t next_token = 1;
  open_requests requests{request_timeout, late_replies::delivered}; // See (4) of router.
  tick_timer timer;

  static inline const char* name = "router";
};

static_assert(!std::is_constructible_v<router_shell, caf::event_based_actor*>);

router_shell::handle::behavior_type run_router(router_shell::pointer self, job_spec job,
                                               server_connector connect, router_options options) {
  self->state.init(self, std::move(job), std::move(connect), options);
  auto& state = self->state;
  return {
    [&state](request& what) { return state.ask(std::move(what)); },
    [&state](view_atom, const view& valid, std::vector<member_address>& listeners) {
      state.listeners = std::move(listeners);
      state.decide([&](time_point now, router_effects& effects) {
        state.decider->set_view(valid, now, effects);
      });
    },
    [&state](tick_atom) { state.tick(); },
  };
}

} // namespace

router_handle spawn_router(caf::actor_system& system, job_spec job, server_connector connect,
                           router_options options) {
  return system.spawn(run_router, std::move(job), std::move(connect), options);
}

} // namespace troupe
