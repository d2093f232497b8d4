#include "actors/store/router_actor.hpp"

#include "actors/clock.hpp"

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

  router_shell() = default;

  void init(pointer owner, job_spec job, server_connector connector, router_options options) {
    self = owner;
    decide.emplace(std::move(job), options);
    connect = std::move(connector);
  }

  template <class Promise>
  request_token keep(std::unordered_map<std::uint64_t, Promise>& promises, Promise promise) {
    const auto token = next_token++;
    promises.emplace(token, std::move(promise));
    return {token};
  }

  // Effects may be appended while they are carried out.
  void carry_out(router_effects& effects) {
    for (std::size_t i = 0; i < effects.size(); ++i)
      std::visit([this](auto& effect) { run(effect); }, effects[i]);
    arm_timer();
  }

  void run(send_part_effect& effect) {
    const auto to = handle_of(effect.to);
    const auto outcome_failed = [this, part = effect.part,
                                 attempt = effect.attempt](caf::error& why) {
      router_effects effects;
      decide->failed(part, attempt, from_caf(why), steady_now(), effects);
      carry_out(effects);
    };
    if (auto* push = std::get_if<update>(&effect.what))
      self->request(to, request_timeout, push_atom_v, std::move(*push))
        .then(
          [this, part = effect.part](const receipt& answer) {
            router_effects effects;
            decide->pushed(part, answer, effects);
            carry_out(effects);
          },
          outcome_failed);
    else
      self->request(to, request_timeout, pull_atom_v, std::move(std::get<query>(effect.what)))
        .then(
          [this, part = effect.part](values& answer) {
            router_effects effects;
            decide->pulled(part, std::move(answer), effects);
            carry_out(effects);
          },
          outcome_failed);
  }

  void run(pushed_effect& effect) {
    settle(pushes, effect.request, effect.receipt);
  }

  void run(pulled_effect& effect) {
    settle(pulls, effect.request, std::move(effect.values));
  }

  void run(failed_effect& effect) {
    settle(pushes, effect.request, to_caf(effect.why));
    settle(pulls, effect.request, to_caf(effect.why));
  }

  template <class Promise, class Outcome>
  void settle(std::unordered_map<std::uint64_t, Promise>& promises, request_token token,
              Outcome outcome) {
    if (auto found = promises.find(token.value); found != promises.end()) {
      found->second.deliver(std::move(outcome));
      promises.erase(found);
    }
  }

  const kv& handle_of(const server_entry& entry) {
    auto& known = servers[entry.server];
    if (!known.handle || known.incarnation != entry.incarnation || known.address != entry.address)
      known = {entry.incarnation, entry.address, connect(entry)};
    return known.handle;
  }

  void arm_timer() {
    const auto due = decide->next_tick();
    if (!due || timer_armed)
      return;
    timer_armed = true;
    const auto pause = std::max(*due - steady_now(), time_point{0});
    self->delayed_send(self, pause, tick_atom_v);
  }

  struct server_handle {
    incarnation_id incarnation;
    std::string address;
    kv handle;
  };

  pointer self = nullptr;
  std::optional<router> decide;
  server_connector connect;
  std::map<server_id, server_handle> servers;
  std::unordered_map<std::uint64_t, caf::typed_response_promise<receipt>> pushes;
  std::unordered_map<std::uint64_t, caf::typed_response_promise<values>> pulls;
  std::uint64_t next_token = 1;
  bool timer_armed = false;

  static inline const char* name = "router";
};

static_assert(!std::is_constructible_v<router_shell, caf::event_based_actor*>);

router_shell::handle::behavior_type run_router(router_shell::pointer self, job_spec job,
                                               server_connector connect, router_options options) {
  self->state.init(self, std::move(job), std::move(connect), options);
  auto& state = self->state;
  return {
    [self, &state](push_atom, update& what) {
      auto promise = self->make_response_promise<receipt>();
      router_effects effects;
      state.decide->push(state.keep(state.pushes, promise), std::move(what), effects);
      state.carry_out(effects);
      return promise;
    },
    [self, &state](pull_atom, query& what) {
      auto promise = self->make_response_promise<values>();
      router_effects effects;
      state.decide->pull(state.keep(state.pulls, promise), std::move(what), effects);
      state.carry_out(effects);
      return promise;
    },
    [&state](view_atom, const view& now_valid) {
      router_effects effects;
      state.decide->set_view(now_valid, effects);
      state.carry_out(effects);
    },
    [&state](tick_atom) {
      state.timer_armed = false;
      router_effects effects;
      state.decide->tick(steady_now(), effects);
      state.carry_out(effects);
    },
  };
}

} // namespace

router_handle spawn_router(caf::actor_system& system, job_spec job, server_connector connect,
                           router_options options) {
  return system.spawn(run_router, std::move(job), std::move(connect), options);
}

} // namespace troupe
