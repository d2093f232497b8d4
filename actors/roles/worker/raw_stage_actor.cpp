#include "actors/roles/worker/raw_stage_actor.hpp"

#include "actors/protocol/worker/raw_relay.hpp"
#include "actors/roles/worker/stage_shell.hpp"
#include "base/exception_text.hpp"
#include "base/growing_map.hpp"

#include "caf/send.hpp"
#include "caf/stateful_actor.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe {

namespace {

using raw_handle = kv::extend<caf::reacts_to<tick_atom>, caf::reacts_to<caf::put_atom, caf::actor>,
                              caf::replies_to<caf::forward_atom, request>::with<reply>>;

std::string text_of_end(const caf::error& reason) {
  if (!reason)
    return "its actor quit";
  if (reason == caf::sec::runtime_error) // CAF does not pass the text on.
    return "its actor threw an exception, whose text CAF printed in the output of the process";
  return "its actor quit with " + to_string(reason);
}

/// Passes requests of clients to the actor, and requests of the actor to the next kv. A guard
/// checks both.
struct raw_shell : stage_shell<raw_handle>, stage_actor_port {
  raw_shell() = default;
  ~raw_shell() override {
    if (actor) // No handler of the program's can ignore this reason.
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    fail_exits();
  }

  void began(pointer holder, stage_options how, kv to) {
    auto made = std::make_unique<raw_relay>(*this);
    relay = made.get();
    begin(holder, std::move(how), std::move(made), std::move(to));
  }

  void put(caf::actor fresh) {
    self->monitor(fresh);
    actor = std::move(fresh);
  }

  promise forward(request& what) {
    auto open = self->make_response_promise<reply>();
    if (guard->is_broken()) {
      open.deliver(to_caf({errc::peer_lost, "the stage has ended"}));
      return open;
    }
    const exit_token token{next_exit++};
    exits.add(token.value, open);
    relay->forwarded_by_actor(token, std::move(what));
    poll();
    return open;
  }

  void ask(request_token from, request what) override {
    const caf::duration as_long_as_it_takes; // The guard watches how long the actor holds it.
    self->request(caf::actor_cast<kv>(actor), as_long_as_it_takes, std::move(what))
      .then(
        [this, from](reply& answer) {
          relay->answered_by_actor(from, std::move(answer));
          poll();
        },
        [this, from](const caf::error& why) {
          relay->failed_by_actor(from, from_caf(why));
          poll();
        });
  }
  void answer(exit_token to, reply what) override {
    if (auto open = exits.extract(to.value))
      open->deliver(std::move(what));
  }
  void refuse(exit_token to, const failure& why) override {
    if (auto open = exits.extract(to.value))
      open->deliver(to_caf(why));
  }
  using stage_shell::ask;

  /// After a breach no request of the actor is answered by the next kv.
  void decided() override {
    if (guard->is_broken())
      fail_exits();
  }
  void fail_exits() {
    exits.erase_if([](std::uint64_t, promise& open) {
      open.deliver(to_caf({errc::peer_lost, "the stage has ended"}));
      return true;
    });
  }

  void poll() {
    decide([&](time_point now, guard_effects& effects) { guard->poll(now, effects); });
  }

  void ended(const caf::down_msg& down) {
    if (down.source != actor)
      return self->quit(); // The next kv has ended.
    decide(
      [&](time_point, guard_effects& effects) { guard->ended(text_of_end(down.reason), effects); });
  }

  caf::actor actor; ///< Of the program.
  raw_relay* relay = nullptr;
  growing_map<promise> exits; ///< Requests of the actor.
  std::uint64_t next_exit = 1;
};

static_assert(!std::is_constructible_v<raw_shell, caf::event_based_actor*>);

raw_handle::behavior_type run_raw_stage(raw_handle::stateful_pointer<raw_shell> self,
                                        stage_options options, kv next) {
  auto& state = self->state;
  self->set_down_handler([&state](caf::down_msg& down) { state.ended(down); });
  state.began(self, std::move(options), std::move(next));
  return {
    [&state](request& what) { return state.ask(what); },
    [&state](tick_atom) { state.tick(); },
    [&state](caf::put_atom, caf::actor& fresh) { state.put(std::move(fresh)); },
    [&state](caf::forward_atom, request& what) { return state.forward(what); },
  };
}

/// Stands for the next kv of the actor. It has no strong reference to the shell, which refers to
/// the actor, which refers to this one.
kv::behavior_type run_exit(kv::pointer self, const caf::actor_addr& shell) {
  return {
    [self, shell](request& what) -> caf::result<reply> {
      const auto to = caf::actor_cast<raw_handle>(shell);
      if (!to)
        return to_caf({errc::peer_lost, "the stage has ended"});
      return self->delegate(to, caf::forward_atom_v, std::move(what));
    },
  };
}

} // namespace

kv spawn_raw_stage(caf::actor_system& system, stage_options options, const raw_stage_maker& make,
                   kv next, bool simulated) {
  const auto name = options.name;
  const stage_notes notes{options.notes, name};
  const auto shell = system.spawn(run_raw_stage, std::move(options), std::move(next));
  const auto exit = system.spawn(run_exit, shell.address());
  const auto made = titled("stage '" + name + "'", [&] { return make(system, exit, notes); });
  if (!made)
    throw std::runtime_error{"the maker of stage '" + name + "' made no actor"};
  const auto* const raw = caf::actor_cast<caf::abstract_actor*>(made);
  if (simulated && raw->getf(caf::abstract_actor::is_detached_flag)) {
    caf::anon_send_exit(made, caf::exit_reason::kill);
    throw std::runtime_error{"stage '" + name
                             + "' is a detached actor, which has no simulated time: spawn it "
                               "without caf::detached, or leave out --simulate"};
  }
  caf::anon_send(shell, caf::put_atom_v, caf::actor_cast<caf::actor>(made));
  return shell;
}

} // namespace troupe
