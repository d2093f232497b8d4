// remote: a kv that stands for one in another process.
#include "actors/clock.hpp"
#include "actors/links/key_book.hpp"
#include "actors/links/switchboard.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"
#include "caf/typed_response_promise.hpp"

#include <algorithm>
#include <deque>
#include <memory>
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
    const auto pushed_bytes = what.push ? payload_bytes(*what.push) : 0;
    const auto pulled_bytes = what.pull ? payload_bytes(*what.pull) : 0;
    if (const auto why = too_long(std::max(pushed_bytes, pulled_bytes))) {
      open.deliver(to_caf(*why));
      return open;
    }
    if (pushed_bytes != 0 && !memory->take(pushed_bytes)) {
      open.deliver(to_caf({errc::overloaded, "more pushes wait than this process may hold"}));
      return open;
    }
    const auto number = next_request++;
    pending.emplace(number, open_request{open, pushed_bytes, pushed_bytes + pulled_bytes, false});
    waiting.push_back({{number, std::move(what)}, now_of(*self)});
    connect();
    send_waiting();
    return open;
  }

  /// As far as the window goes; one request goes in any case.
  void send_waiting() {
    while (is_open && !waiting.empty()) {
      auto& [next, since] = waiting.front();
      auto& open = pending.at(next.number);
      const bool alone = on_the_way_bytes == 0;
      if (!alone && on_the_way_bytes + open.bytes > limits.window_bytes)
        return;
      if (alone)
        memory->take_in_any_case(open.pushed_bytes);
      else if (!memory->take(open.pushed_bytes))
        return;
      open.on_the_way = true;
      on_the_way_bytes += open.bytes;
      memory->add_waited(now_of(*self) - since);
      send(std::move(next));
      waiting.pop_front();
    }
  }

  void connect() {
    if (link)
      return;
    if (auto alive = board.lock())
      link = alive->connect(where, caf::actor_cast<link_owner>(self));
    else
      fail_all({errc::peer_lost, "this process is shutting down"});
  }

  /// Whatever the book notes is sent, before anything else; or the link ends, and the book with it.
  void send(request_message what) {
    const auto alive = board.lock();
    if (!alive)
      return;
    if (limits.key_book)
      book.shorten(what);
    memory->add_sent(alive->send(*link, std::move(what)));
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
    send_waiting();
  }

  void lost(link_id which, const failure& why) {
    if (link != which)
      return;
    link.reset();
    is_open = false;
    book = key_book{};
    fail_all({errc::peer_lost, why.text});
  }

  void fail_all(const failure& why) {
    waiting.clear();
    for (auto& [unused, open] : std::exchange(pending, {})) {
      end(open);
      open.promise.deliver(to_caf(why));
    }
  }

  void receive(message& what) {
    std::visit([this](auto& x) { answer(x); }, what);
  }

  void answer(reply_message& came) {
    memory->add_received(came.frame_bytes);
    settle(came.number, std::move(came.what));
  }
  void answer(failure_message& came) {
    memory->add_received(came.frame_bytes);
    settle(came.number, to_caf(came.why));
  }
  template <class Other>
  void answer(Other&) {} // Nothing else is expected from a server; its decoder let it pass.

  template <class Outcome>
  void settle(std::uint64_t number, Outcome outcome) {
    auto found = pending.extract(number);
    if (!found)
      return;
    end(found.mapped());
    found.mapped().promise.deliver(std::move(outcome));
    send_waiting();
  }

  struct open_request {
    remote_shell::promise promise;
    std::uint64_t pushed_bytes = 0;
    std::uint64_t bytes = 0; ///< Brought and asked for.
    bool on_the_way = false;
  };
  struct waiting_request {
    request_message what;
    time_point since{0};
  };

  void end(const open_request& what) {
    memory->give_back(what.on_the_way ? 2 * what.pushed_bytes : what.pushed_bytes);
    on_the_way_bytes -= what.on_the_way ? what.bytes : 0;
  }

  pointer self = nullptr;
  switchboard_ptr board;
  endpoint where;
  member_id whom;
  std::optional<link_id> link;
  bool is_open = false;
  key_book book; ///< Of the open link.
  send_limits limits;
  std::shared_ptr<push_memory> memory;
  std::deque<waiting_request> waiting; ///< For the link to open, or for the window.
  std::unordered_map<std::uint64_t, open_request> pending;
  std::uint64_t on_the_way_bytes = 0;
  std::uint64_t next_request = 1;

  static inline const char* name = "remote";
};

static_assert(!std::is_constructible_v<remote_shell, caf::event_based_actor*>);

remote_shell::handle::behavior_type run(remote_shell::pointer self, switchboard_ptr board,
                                        endpoint where, member_id whom, const send_limits& limits,
                                        std::shared_ptr<push_memory> memory) {
  auto& state = self->state;
  state.limits = limits;
  state.memory = std::move(memory);
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

kv spawn_remote(caf::actor_system& system, switchboard_ptr board, endpoint where, member_id whom,
                const send_limits& limits, std::shared_ptr<push_memory> memory) {
  return system.spawn(run, std::move(board), std::move(where), whom, limits, std::move(memory));
}

} // namespace troupe::detail
