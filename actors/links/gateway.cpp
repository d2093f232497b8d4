// gateway: the other end of a remote; answers the requests of one link from a kv of this process.
#include "actors/links/key_book.hpp"
#include "actors/links/switchboard.hpp"
#include "actors/open_requests.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <utility>

namespace troupe::detail {

namespace {

struct gateway_shell {
  using handle = link_owner::extend<caf::reacts_to<tick_atom>>;
  using pointer = handle::stateful_pointer<gateway_shell>;

  gateway_shell() = default;

  void receive(message& what) {
    std::visit([this](auto& x) { answer(x); }, what);
  }

  void answer(request_message& asked) {
    if (auto whole = shelf.complete(asked); !whole)
      return turn_away(whole.error());
    requests.send<reply>(
      self, target,
      [this, number = asked.number](reply& answer) {
        if (auto why = answer.pulled ? too_long(payload_bytes(*answer.pulled)) : std::nullopt)
          send(failure_message{number, *std::move(why)});
        else
          send(reply_message{number, std::move(answer)});
      },
      [this, number = asked.number](const caf::error& why) {
        send(failure_message{number, from_caf(why)});
      },
      std::move(asked.what));
    scan_later();
  }

  template <class Other>
  void answer(Other&) {
    if (auto alive = board.lock()) // Whoever sends anything else here is confused.
      alive->close(link);
  }

  void turn_away(const failure& why) {
    send(refusal{why});
    if (auto alive = board.lock())
      alive->close(link);
  }

  void tick() {
    scanning = false;
    requests.expire(now_of(*self));
    scan_later();
  }

  void scan_later() {
    if (scanning || requests.empty())
      return;
    scanning = true;
    self->delayed_send(self, deadline_scan_interval, tick_atom_v);
  }

  void send(const message& what) {
    if (auto alive = board.lock())
      alive->send(link, what);
  }

  pointer self = nullptr;
  switchboard_ptr board;
  link_id link;
  kv target;
  key_shelf shelf;
  open_requests requests{request_timeout};
  bool scanning = false;

  static inline const char* name = "gateway";
};

static_assert(!std::is_constructible_v<gateway_shell, caf::event_based_actor*>);

gateway_shell::handle::behavior_type run(gateway_shell::pointer self, switchboard_ptr board,
                                         link_id link, kv target) {
  auto& state = self->state;
  state.self = self;
  state.board = std::move(board);
  state.link = link;
  state.target = std::move(target);
  return {
    [](opened_atom, link_id, const hello&) {},
    [self](lost_atom, link_id, const failure&) { self->quit(); },
    [&state](link_id, message& what) { state.receive(what); },
    [&state](tick_atom) { state.tick(); },
  };
}

} // namespace

link_owner spawn_gateway(caf::actor_system& system, switchboard_ptr board, link_id link,
                         kv target) {
  return system.spawn(run, std::move(board), link, std::move(target));
}

} // namespace troupe::detail
