#include "actors/roles/worker/router_actor.hpp"

#include "actors/open_requests.hpp"
#include "actors/tick_timer.hpp"
#include "base/clock.hpp"

#include "caf/response_promise.hpp"
#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"
#include "caf/typed_response_promise.hpp"

#include <optional>
#include <unordered_map>
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
    decide.emplace(std::move(job), options);
    connect = std::move(connector);
  }

  promise ask(request what) {
    auto open = self->make_response_promise<reply>();
    const request_token token{next_token++};
    promises.emplace(token.value, open);
    router_effects effects;
    decide->ask(token, std::move(what), now_of(*self), effects);
    carry_out(effects);
    return open;
  }

  // Carries out effects, each of which may append more.
  void carry_out(router_effects& effects) {
    for (std::size_t i = 0; i < effects.size(); ++i)
      std::visit([this](auto& effect) { run(effect); }, effects[i]);
    timer.arm(*self, decide->next_tick(), !requests.empty());
  }

  void run(send_part_effect& effect) {
    const auto to = handle_of(effect.to);
    requests.send<reply>(
      self, to,
      [this, part = effect.part](reply& answer) {
        router_effects effects;
        decide->answered(part, std::move(answer), now_of(*self), effects);
        carry_out(effects);
      },
      [this, part = effect.part, attempt = effect.attempt](const caf::error& why) {
        router_effects effects;
        decide->failed(part, attempt, from_caf(why), now_of(*self), effects);
        carry_out(effects);
      },
      std::move(effect.what));
  }

  void run(answered_effect& effect) { settle(effect.request, std::move(effect.answer)); }

  void run(failed_effect& effect) { settle(effect.request, to_caf(effect.why)); }

  template <class Outcome>
  void settle(request_token token, Outcome outcome) {
    if (auto open = promises.extract(token.value))
      open.mapped().deliver(std::move(outcome));
  }

  /// Returns the handle of a server, which serves all chains that the server leads.
  const kv& handle_of(const chain_entry& entry) {
    auto& known = servers[entry.head.index];
    if (!known.handle || known.incarnation != entry.head.incarnation
        || known.address != entry.address)
      known = {entry.head.incarnation, entry.address, connect(entry)};
    return known.handle;
  }

  void tick() {
    const auto now = now_of(*self);
    timer.ticked(now);
    requests.expire(now);
    router_effects effects;
    decide->tick(now, effects);
    carry_out(effects);
  }

  struct server_handle {
    incarnation_id incarnation;
    std::string address;
    kv handle;
  };

  pointer self = nullptr;
  std::optional<router> decide;
  server_connector connect;
  std::map<std::uint32_t, server_handle> servers; ///< By index.
  std::unordered_map<std::uint64_t, promise> promises;
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
    [&state](view_atom, const view& now_valid) {
      router_effects effects;
      state.decide->set_view(now_valid, now_of(*state.self), effects);
      state.carry_out(effects);
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
