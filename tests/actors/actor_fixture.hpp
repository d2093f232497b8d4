// Runs actors on one thread, under a clock that the test moves, against scripted partners.
#pragma once

#include "actors/graph/launch/actor_config.hpp"
#include "actors/kv.hpp"
#include "actors/roles/worker/router_actor.hpp"

#include "caf/actor_system.hpp"
#include "caf/event_based_actor.hpp"
#include "caf/scheduler/test_coordinator.hpp"
#include "caf/scoped_actor.hpp"
#include "caf/send.hpp"
#include "caf/typed_event_based_actor.hpp"
#include "caf/typed_response_promise.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace troupe::test {

/// The reply or the error of a request; neither while it is pending.
template <class Reply>
struct outcome {
  std::optional<Reply> reply;
  std::optional<failure> error;

  bool pending() const { return !reply && !error; }
};

struct actor_fixture {
  actor_fixture() = default;
  ~actor_fixture() {
    for (const auto& x : actors)
      caf::anon_send_exit(x, caf::exit_reason::kill);
    actors.clear();
    sched.run();
    // Timers hold references to their actors.
    while (sched.has_pending_timeout()) {
      sched.trigger_timeouts();
      sched.run();
    }
  }

  /// Ends the actor with the fixture at the latest.
  template <class Handle>
  Handle owned(Handle handle) {
    actors.push_back(caf::actor_cast<caf::actor>(handle));
    sched.run();
    return handle;
  }

  template <class Handle, class... Ts>
  void send(const Handle& to, Ts&&... what) {
    caf::anon_send(to, std::forward<Ts>(what)...);
    sched.run();
  }

  /// Returns the clock that advance() moves, for code that needs more than an actor's own clock.
  std::function<time_point()> clock() {
    return [this] { return sched.clock().now().time_since_epoch(); };
  }

  void advance(std::chrono::milliseconds time,
               std::chrono::milliseconds step = std::chrono::milliseconds{10}) {
    for (std::chrono::milliseconds passed{0}; passed < time; passed += step) {
      sched.advance_time(step);
      sched.run();
    }
  }

  template <class Part, class Target>
  std::shared_ptr<outcome<Part>> ask(const Target& to, const request& what,
                                     std::optional<Part> reply::*part) {
    auto found = std::make_shared<outcome<Part>>();
    const auto responder = [=](caf::event_based_actor* self) {
      self->request(to, std::chrono::minutes{60}, what)
        .then([=](reply& answer) { found->reply = std::move(answer.*part); },
              [found](const caf::error& why) { found->error = from_caf(why); });
    };
    system.spawn(responder);
    sched.run();
    return found;
  }
  template <class Target>
  auto push(const Target& to, push_request what) {
    return ask(to, {std::move(what), {}}, &reply::pushed);
  }
  template <class Target>
  auto pull(const Target& to, pull_request what) {
    return ask(to, {{}, std::move(what)}, &reply::pulled);
  }

  actor_config config{0};
  caf::actor_system system{config};
  caf::scheduler::test_coordinator& sched =
    dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  std::vector<caf::actor> actors;
};

/// Stands in for a kv and for a router: answers as the test says, or holds requests.
class fake_kv {
public:
  using push_answer = std::variant<push_reply, failure>;
  using pull_answer = std::variant<pull_reply, failure>;

  explicit fake_kv(actor_fixture& f) : fixture_(f), state_(std::make_shared<state>()) {
    handle_ =
      f.owned(f.system.spawn([what = state_](actor::pointer self) { return run(self, what); }));
  }

  router_handle handle() const { return handle_; }

  /// The function is called for each half of a request; nullopt holds the half.
  void on_push(std::function<std::optional<push_answer>(const push_request&)> what) {
    state_->on_push = std::move(what);
  }
  void on_pull(std::function<std::optional<pull_answer>(const pull_request&)> what) {
    state_->on_pull = std::move(what);
  }
  /// Calls the functions again for every half that is held.
  void release() { fixture_.send(handle_, tick_atom_v); }

  const std::vector<push_request>& pushes() const { return state_->pushes; }
  const std::vector<pull_request>& pulls() const { return state_->pulls; }
  const std::vector<view>& views() const { return state_->views; }
  std::size_t requests() const { return state_->requests; }
  /// Pushes without an answer.
  std::size_t held_pushes() const {
    return held_with([](const held& x) { return x.what.push && !x.answer.pushed; });
  }
  std::size_t held_pulls() const {
    return held_with([](const held& x) { return x.what.pull && !x.answer.pulled; });
  }

private:
  using actor = router_handle::extend<caf::reacts_to<tick_atom>>;

  struct held {
    request what;
    reply answer;
    caf::typed_response_promise<reply> promise;
  };
  struct state {
    std::function<std::optional<push_answer>(const push_request&)> on_push;
    std::function<std::optional<pull_answer>(const pull_request&)> on_pull;
    std::size_t requests = 0;
    std::vector<push_request> pushes;
    std::vector<pull_request> pulls;
    std::vector<view> views;
    std::vector<held> open;
  };

  template <class Is>
  std::size_t held_with(Is is) const {
    return static_cast<std::size_t>(std::count_if(state_->open.begin(), state_->open.end(), is));
  }

  /// Returns whether a half has its answer or has failed; `why`: the error of a failed half.
  template <class Asked, class Answer, class Ask>
  static bool settle(const std::optional<Asked>& asked, std::optional<Answer>& answer,
                     const Ask& ask, std::optional<failure>& why) {
    if (!asked || answer)
      return true;
    auto told = ask ? ask(*asked) : std::nullopt;
    if (!told)
      return false;
    if (const auto* failed = std::get_if<failure>(&*told))
      why = *failed;
    else
      answer = std::get<Answer>(std::move(*told));
    return true;
  }

  static bool settled(held& open, const state& what) {
    std::optional<failure> why;
    const bool pushed = settle(open.what.push, open.answer.pushed, what.on_push, why);
    const bool pulled = !why && settle(open.what.pull, open.answer.pulled, what.on_pull, why);
    if (why)
      open.promise.deliver(to_caf(*why));
    else if (pushed && pulled)
      open.promise.deliver(open.answer);
    return why || (pushed && pulled);
  }

  static actor::behavior_type run(actor::pointer self, const std::shared_ptr<state>& what) {
    return {
      [=](const request& x) {
        held open{x, {}, self->make_response_promise<reply>()};
        ++what->requests;
        if (x.push)
          what->pushes.push_back(*x.push);
        if (x.pull)
          what->pulls.push_back(*x.pull);
        if (!settled(open, *what))
          what->open.push_back(open);
        return open.promise;
      },
      [=](view_atom, const view& x, const std::vector<member_address>&) {
        what->views.push_back(x);
      },
      [=](tick_atom) { std::erase_if(what->open, [&](auto& x) { return settled(x, *what); }); },
    };
  }

  actor_fixture& fixture_;
  std::shared_ptr<state> state_;
  actor handle_;
};

/// Records the reports; the test plays the coordinator's part with `order`.
class fake_coordinator {
public:
  explicit fake_coordinator(actor_fixture& f)
      : fixture_(f), reports_(std::make_shared<std::vector<status_message>>()) {
    handle_ = f.owned(f.system.spawn(
      [what = reports_](coordinator_handle::pointer) -> coordinator_handle::behavior_type {
        return {[=](const status_message& x, const troupe::member_handle&) { what->push_back(x); }};
      }));
  }

  coordinator_connector connector() const {
    return [handle = handle_](const troupe::member_handle&) { return handle; };
  }

  template <class Handle, class Body>
  void order(const Handle& to, Body body, bool stop = false,
             std::vector<member_address> listeners = {}) {
    desired_state what;
    what.term = 1;
    what.sequence = ++sequence;
    what.stop = stop;
    what.body = std::move(body);
    what.listeners = std::move(listeners);
    fixture_.send(to, std::move(what));
  }

  const std::vector<status_message>& reports() const { return *reports_; }
  template <class Body>
  const Body& last() const {
    return std::get<Body>(reports_->back().body);
  }

  std::uint64_t sequence = 0;

private:
  actor_fixture& fixture_;
  std::shared_ptr<std::vector<status_message>> reports_;
  coordinator_handle handle_;
};

} // namespace troupe::test
