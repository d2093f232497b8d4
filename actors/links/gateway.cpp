// gateway: the other end of a remote; answers the requests of one link from a kv of this process.
#include "actors/links/switchboard.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <utility>

namespace troupe::detail {

namespace {

struct gateway_shell {
  using pointer = link_owner::stateful_pointer<gateway_shell>;

  gateway_shell() = default;

  void receive(message& what) {
    std::visit([this](auto& x) { handle(x); }, what);
  }

  void handle(push_request& what) {
    self->request(target, request_timeout, push_atom_v, std::move(what.update))
      .then([this, number = what.request](
              const receipt& answer) { send(push_reply{number, answer}); },
            [this, number = what.request](
              const caf::error& why) { send(failure_reply{number, from_caf(why)}); });
  }

  void handle(pull_request& what) {
    self->request(target, request_timeout, pull_atom_v, std::move(what.query))
      .then([this, number = what.request](
              values& answer) { send(pull_reply{number, std::move(answer)}); },
            [this, number = what.request](
              const caf::error& why) { send(failure_reply{number, from_caf(why)}); });
  }

  template <class Other>
  void handle(Other&) {
    if (auto alive = board.lock()) // Whoever sends anything else here is confused.
      alive->close(link);
  }

  void send(const message& what) {
    if (auto alive = board.lock())
      alive->send(link, what);
  }

  pointer self = nullptr;
  switchboard_ptr board;
  link_id link;
  kv target;

  static inline const char* name = "gateway";
};

static_assert(!std::is_constructible_v<gateway_shell, caf::event_based_actor*>);

link_owner::behavior_type run(gateway_shell::pointer self, switchboard_ptr board, link_id link,
                              kv target) {
  auto& state = self->state;
  state.self = self;
  state.board = std::move(board);
  state.link = link;
  state.target = std::move(target);
  return {
    [](opened_atom, link_id, const hello&) {},
    [self](lost_atom, link_id, const failure&) { self->quit(); },
    [&state](link_id, message& what) { state.receive(what); },
  };
}

} // namespace

link_owner spawn_gateway(caf::actor_system& system, switchboard_ptr board, link_id link,
                         kv target) {
  return system.spawn(run, std::move(board), link, std::move(target));
}

} // namespace troupe::detail
