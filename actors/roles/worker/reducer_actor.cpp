#include "actors/roles/worker/reducer_actor.hpp"

#include "actors/effect_runner.hpp"
#include "actors/open_requests.hpp"
#include "actors/tables/device_pushes.hpp"
#include "actors/tick_timer.hpp"
#include "base/clock.hpp"
#include "base/growing_map.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"
#include "caf/typed_response_promise.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe {

namespace {

// The router behind it retries requests after failovers, so only a cluster that is stalled for good
// exceeds this.
constexpr std::chrono::minutes forward_timeout{10};

struct reducer_shell {
  using handle = router_handle::extend<caf::reacts_to<tick_atom>>;
  using pointer = handle::stateful_pointer<reducer_shell>;
  using promise = caf::typed_response_promise<reply>;

  reducer_shell() = default;

  void init(pointer owner, job_spec of, reducer_options options, router_handle to,
            std::shared_ptr<reducer_tally> counts) {
    self = owner;
    job = std::move(of);
    decider.emplace(job, options);
    next = std::move(to);
    tally = std::move(counts);
  }

  promise ask(request what) {
    auto open = self->make_response_promise<reply>();
    const request_token token{next_token++};
    promises.add(token.value, open);
    decide([&](time_point now, reducer_effects& effects) {
      decider->ask(token, std::move(what), now, effects);
    });
    return open;
  }

  template <class Event>
  void decide(Event event) {
    runner.decide([&](reducer_effects& effects) { event(now_of(*self), effects); },
                  [this](auto& effect, reducer_effects& more) { run(effect, more); });
    timer.arm(*self, decider->next_tick(), !requests.empty());
  }

  void run(forward_effect& effect, reducer_effects& more) {
    request what;
    what.pull = std::move(effect.pull);
    if (!effect.pushes.empty()) {
      const auto push = as_one(effect.pushes);
      if (!push)
        return decider->failed(effect.number, push.error(), more);
      what.push = **push;
    }
    const auto settle = [this, number = effect.number](auto outcome) {
      decide([&](time_point, reducer_effects& effects) {
        if constexpr (std::is_same_v<decltype(outcome), reply>)
          decider->answered(number, outcome, effects);
        else
          decider->failed(number, outcome, effects);
      });
    };
    requests.send<reply>(
      self, next, [settle](reply& answer) { settle(std::move(answer)); },
      [settle](const caf::error& why) { settle(from_caf(why)); }, std::move(what));
  }

  /// Returns the pushes as one push. If a device fails, workers compute its gradients once more.
  result<push_ptr> as_one(const std::vector<push_ptr>& pushes) {
    if (pushes.size() == 1)
      return bring_to_host(pushes.front(), *pool);
    auto sum = add_up_anywhere(job, pushes, *pool);
    if (!sum)
      return {errc::sum_not_applicable, sum.error().text};
    tally->sums += 1;
    tally->device_sums += are_on_one_group(pushes) ? 1 : 0;
    tally->pushes_summed += pushes.size();
    return sum;
  }

  void run(left_out_effect& effect, reducer_effects&) {
    if (effect.worker.value < tally->left_out.size())
      tally->left_out[effect.worker.value] += 1;
  }

  void run(answered_effect& effect, reducer_effects&) {
    settle(effect.request, std::move(effect.answer));
  }
  void run(failed_effect& effect, reducer_effects&) { settle(effect.request, to_caf(effect.why)); }

  template <class Outcome>
  void settle(request_token token, Outcome outcome) {
    if (auto open = promises.extract(token.value))
      open->deliver(std::move(outcome));
  }

  void tick() {
    timer.ticked(now_of(*self));
    requests.expire(now_of(*self));
    decide([&](time_point now, reducer_effects& effects) { decider->tick(now, effects); });
  }

  pointer self = nullptr;
  job_spec job;
  std::optional<reducer> decider;
  effect_runner<reducer_effect> runner;
  router_handle next;
  std::shared_ptr<reducer_tally> tally;
  std::shared_ptr<buffer_pool> pool = std::make_shared<buffer_pool>();
  growing_map<promise> promises;
  std::uint64_t next_token = 1;
  open_requests requests{forward_timeout};
  tick_timer timer;

  static inline const char* name = "reducer";
};

static_assert(!std::is_constructible_v<reducer_shell, caf::event_based_actor*>);

reducer_shell::handle::behavior_type run_reducer(reducer_shell::pointer self, job_spec job,
                                                 reducer_options options, router_handle next,
                                                 std::shared_ptr<reducer_tally> tally) {
  self->state.init(self, std::move(job), options, std::move(next), std::move(tally));
  auto& state = self->state;
  return {
    [&state](request& what) { return state.ask(std::move(what)); },
    [&state](view_atom, const view& now_valid) {
      state.self->send(state.next, view_atom_v, now_valid);
    },
    [&state](tick_atom) { state.tick(); },
  };
}

} // namespace

void count(const reducer_tally& tally, std::uint32_t worker, bool all, worker_counters& counters) {
  if (worker < tally.left_out.size())
    counters.left_out = tally.left_out[worker];
  counters.sums = all ? tally.sums.load() : 0;
  counters.device_sums = all ? tally.device_sums.load() : 0;
  counters.pushes_summed = all ? tally.pushes_summed.load() : 0;
}

router_handle spawn_reducer(caf::actor_system& system, job_spec job, reducer_options options,
                            router_handle next, std::shared_ptr<reducer_tally> tally,
                            bool own_thread) {
  if (!own_thread)
    return system.spawn(run_reducer, std::move(job), options, std::move(next), std::move(tally));
  return system.spawn<caf::detached>(run_reducer, std::move(job), options, std::move(next),
                                     std::move(tally));
}

} // namespace troupe
