// remote: a kv that stands for one in another process.
#include "actors/links/switchboard.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"
#include "caf/typed_response_promise.hpp"

#include <unordered_map>
#include <utility>
#include <variant>

namespace troupe::detail {

namespace {

struct remote_shell {
  using handle = kv::extend_with<link_owner>;
  using pointer = handle::stateful_pointer<remote_shell>;
  using promise = caf::typed_response_promise<reply>;

  remote_shell() = default;

  promise forward(request what) {
    auto open = self->make_response_promise<reply>();
    if (const auto why = what.push ? too_long(what.push->pieces) : std::nullopt) {
      open.deliver(to_caf(*why));
      return open;
    }
    request_message sent{next_request++, std::move(what)};
    pending.emplace(sent.number, open);
    connect();
    if (is_open)
      send(std::move(sent));
    else if (link)
      waiting.push_back(std::move(sent));
    return open;
  }

  void connect() {
    if (link)
      return;
    if (auto alive = board.lock())
      link = alive->connect(where, caf::actor_cast<link_owner>(self));
    else
      fail_all({errc::peer_lost, "this process is shutting down"});
  }

  void send(const message& what) {
    if (auto alive = board.lock())
      alive->send(*link, what);
  }

  void opened(link_id which, const hello& peer) {
    if (link != which)
      return;
    if (peer.from != whom) { // Its port went to another process.
      if (auto alive = board.lock())
        alive->close(which);
      return;
    }
    is_open = true;
    for (const auto& request : std::exchange(waiting, {}))
      send(request);
  }

  void lost(link_id which, const failure& why) {
    if (link != which)
      return;
    link.reset();
    is_open = false;
    fail_all({errc::peer_lost, why.text});
  }

  void fail_all(const failure& why) {
    waiting.clear();
    for (auto& [unused, open] : std::exchange(pending, {}))
      open.deliver(to_caf(why));
  }

  void receive(message& what) {
    std::visit([this](auto& x) { answer(x); }, what);
  }

  void answer(reply_message& came) { settle(came.number, std::move(came.what)); }
  void answer(failure_message& came) { settle(came.number, to_caf(came.why)); }
  template <class Other>
  void answer(Other&) {} // Nothing else is expected from a server; its decoder let it pass.

  template <class Outcome>
  void settle(std::uint64_t number, Outcome outcome) {
    if (auto open = pending.extract(number))
      open.mapped().deliver(std::move(outcome));
  }

  pointer self = nullptr;
  switchboard_ptr board;
  endpoint where;
  member_id whom;
  std::optional<link_id> link;
  bool is_open = false;
  std::vector<message> waiting; ///< Requests made before the link opened.
  std::unordered_map<std::uint64_t, promise> pending;
  std::uint64_t next_request = 1;

  static inline const char* name = "remote";
};

static_assert(!std::is_constructible_v<remote_shell, caf::event_based_actor*>);

remote_shell::handle::behavior_type run(remote_shell::pointer self, switchboard_ptr board,
                                        endpoint where, member_id whom) {
  auto& state = self->state;
  state.self = self;
  state.board = std::move(board);
  state.where = std::move(where);
  state.whom = whom;
  return {
    [&state](request& what) { return state.forward(std::move(what)); },
    [&state](opened_atom, link_id link, const hello& peer) { state.opened(link, peer); },
    [&state](lost_atom, link_id link, const failure& why) { state.lost(link, why); },
    [&state](link_id, message& what) { state.receive(what); },
  };
}

} // namespace

kv spawn_remote(caf::actor_system& system, switchboard_ptr board, endpoint where, member_id whom) {
  return system.spawn(run, std::move(board), std::move(where), whom);
}

} // namespace troupe::detail
