// A remote is a kv that stands for a kv in another process.
#include "actors/effect_runner.hpp"
#include "actors/open_requests.hpp"
#include "actors/protocol/process_name.hpp"
#include "actors/protocol/worker/request_window.hpp"
#include "actors/reply_batch.hpp"
#include "actors/roles/links/key_cache.hpp"
#include "actors/roles/links/link_dispatcher.hpp"
#include "base/clock.hpp"
#include "base/growing_map.hpp"
#include "serialization/payload.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"
#include "caf/typed_response_promise.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

namespace troupe::detail {

namespace {

struct remote_shell {
  using handle = kv_service::extend_with<link_owner>::extend<caf::reacts_to<step_atom>,
                                                             caf::reacts_to<tick_atom>>;
  using pointer = handle::stateful_pointer<remote_shell>;
  using promise = caf::typed_response_promise<reply>;

  promise forward(request what) {
    auto open = self->make_response_promise<reply>();
    decide(
      [&](time_point now, window_effects& effects) { add(open, std::move(what), now, effects); });
    return open;
  }

  void forward(request_list& what, const answer_sink& to) {
    decide([&](time_point now, window_effects& effects) {
      for (auto& each : what.items)
        add(numbered_responder{to, each.number}, std::move(each.what), now, effects);
    });
  }

  void add(responder by, request what, time_point now, window_effects& effects) {
    const auto pushed_bytes = what.push ? payload_bytes(*what.push) : 0;
    const auto pulled_bytes = what.pull ? payload_bytes(*what.pull) : 0;
    if (const auto why = too_long(std::max(pushed_bytes, pulled_bytes)))
      return answers.add(by, *why);
    const auto number = next_request++;
    responders.add(number, std::move(by));
    window->add(number, std::move(what), now, effects);
  }

  void flush() {
    decide([&](time_point, window_effects& effects) { window->flush(effects); });
  }

  void opened(link_id which, const hello& peer) {
    if (link != which)
      return;
    if (peer.from != whom) { // Another process has the port now.
      if (auto alive = dispatcher.lock())
        alive->close(which);
      return;
    }
    decide([&](time_point now, window_effects& effects) { window->opened(now, effects); });
  }

  void lost(link_id which, const failure& why) {
    if (link == which)
      decide([&](time_point, window_effects& effects) { on_link_lost(why, effects); });
  }

  void on_link_lost(const failure& why, window_effects& effects) {
    link.reset();
    cache = key_cache{};
    window->lost(why, effects);
  }

  void receive(message& what) {
    auto* came = std::get_if<answer_list>(&what);
    if (came == nullptr)
      return; // The decoder lets other messages pass, but a server sends none.
    memory->add_received(came->frame_bytes);
    decide([&](time_point now, window_effects& effects) {
      for (auto& each : came->items)
        std::visit([&](auto& x) { close(x.number, std::move(x.what), now, effects); }, each);
    });
  }

  void close(std::uint64_t number, std::variant<reply, failure> outcome, time_point now,
             window_effects& effects) {
    if (window->answered(number, now, effects))
      answer(number, std::move(outcome));
  }

  void answer(std::uint64_t number, std::variant<reply, failure> outcome) {
    auto by = responders.extract(number);
    answers.add(*by, std::move(outcome));
  }

  void expire() {
    is_scanning = false;
    decide([&](time_point now, window_effects& effects) { window->expire(now, effects); });
  }

  // -- effects --

  template <class Event>
  void decide(Event event) {
    runner.decide([&](window_effects& effects) { event(now_of(*self), effects); },
                  [this](auto& effect, window_effects& more) { run(effect, more); });
    answers.send(self);
    if (!window->is_empty() && !std::exchange(is_scanning, true))
      self->delayed_send(self, deadline_scan_interval, tick_atom_v);
  }

  void run(connect_effect&, window_effects& more) {
    if (auto alive = dispatcher.lock())
      link = alive->connect(where, to_string(process_of(whom)), caf::actor_cast<link_owner>(self));
    else
      on_link_lost({errc::peer_lost, "this process is shutting down"}, more);
  }

  void run(send_requests_effect& effect, window_effects&) {
    auto alive = dispatcher.lock();
    if (!alive || !link)
      return;
    if (shortens_keys)
      for (auto& each : effect.requests.items)
        cache.shorten(each); // Bulk requests leave in this order, or link and cache end.
    memory->add_sent(alive->send(*link, std::move(effect.requests)));
  }

  void run(flush_soon_effect&, window_effects&) {
    self->send(self, step_atom_v); // After the messages that wait.
  }

  void run(end_request_effect& effect, window_effects&) {
    answer(effect.number, std::move(effect.why));
  }

  pointer self = nullptr;
  link_dispatcher_ptr dispatcher;
  endpoint where;
  member_id whom;
  std::optional<link_id> link;
  key_cache cache; ///< For the open link.
  bool shortens_keys = true;
  std::shared_ptr<push_quota> memory;
  std::optional<request_window> window;
  effect_runner<window_effect> runner;
  growing_map<responder> responders; ///< By the number of the request.
  std::uint64_t next_request = 1;
  bool is_scanning = false; ///< A tick_atom is on its way.
  reply_batcher answers;

  static inline const char* name = "remote";
};

static_assert(!std::is_constructible_v<remote_shell, caf::event_based_actor*>);

remote_shell::handle::behavior_type run_remote(remote_shell::pointer self,
                                               link_dispatcher_ptr dispatcher, endpoint where,
                                               member_id whom, const send_limits& limits,
                                               std::shared_ptr<push_quota> memory) {
  auto& state = self->state;
  state.shortens_keys = limits.key_cache;
  state.memory = std::move(memory);
  state.window.emplace(request_window_options{limits.window_bytes, request_timeout}, state.memory);
  state.self = self;
  state.dispatcher = std::move(dispatcher);
  state.where = std::move(where);
  state.whom = whom;
  return {
    [&state](request& what) { return state.forward(std::move(what)); },
    [&state](request_list& what, const answer_sink& to) { state.forward(what, to); },
    [&state](step_atom) { state.flush(); },
    [&state](tick_atom) { state.expire(); },
    [&state](opened_atom, link_id link, const hello& peer) { state.opened(link, peer); },
    [&state](lost_atom, link_id link, const failure& why) { state.lost(link, why); },
    [&state](link_id, message& what) { state.receive(what); },
  };
}

} // namespace

kv_service spawn_remote(caf::actor_system& system, link_dispatcher_ptr dispatcher, endpoint where,
                        member_id whom, const send_limits& limits,
                        std::shared_ptr<push_quota> memory) {
  return system.spawn(run_remote, std::move(dispatcher), std::move(where), whom, limits,
                      std::move(memory));
}

} // namespace troupe::detail
