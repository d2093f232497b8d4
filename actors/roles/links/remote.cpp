// A remote is a kv that stands for a kv in another process.
#include "actors/open_requests.hpp"
#include "actors/process_name.hpp"
#include "actors/reply_batch.hpp"
#include "actors/roles/links/key_cache.hpp"
#include "actors/roles/links/link_dispatcher.hpp"
#include "actors/transport/frames/traffic_class.hpp"
#include "base/clock.hpp"
#include "serialization/payload.hpp"

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
  using handle = kv_service::extend_with<link_owner>::extend<caf::reacts_to<step_atom>,
                                                             caf::reacts_to<tick_atom>>;
  using pointer = handle::stateful_pointer<remote_shell>;
  using promise = caf::typed_response_promise<reply>;

  struct open_request {
    responder by;
    time_point deadline{0};
    std::uint64_t pushed_bytes = 0;
    std::uint64_t bytes = 0; ///< Pushed and pulled values.
    bool on_the_way = false;
  };
  /// Short requests of one class that leave in one frame.
  struct leaving {
    request_list requests;
    std::uint64_t bytes = 0;
  };
  remote_shell() = default;

  promise forward(request what) {
    auto open = self->make_response_promise<reply>();
    accept(open, std::move(what));
    send_waiting();
    return open;
  }

  void forward(request_list& what, const answer_sink& to) {
    for (auto& each : what.items)
      accept(numbered_responder{to, each.number}, std::move(each.what));
    send_waiting();
    answers.send(self);
  }

  void accept(responder by, request what) {
    const auto pushed_bytes = what.push ? payload_bytes(*what.push) : 0;
    const auto pulled_bytes = what.pull ? payload_bytes(*what.pull) : 0;
    if (const auto why = too_long(std::max(pushed_bytes, pulled_bytes)))
      return answers.add(by, *why);
    if (pushed_bytes != 0 && !memory->take(pushed_bytes))
      return answers.add(by,
                         failure{errc::overloaded, "more pushes wait than this process may hold"});
    const auto number = next_request++;
    const auto bytes = pushed_bytes + pulled_bytes;
    open_bytes += bytes;
    scan_later();
    auto& open = pending[number] =
      open_request{std::move(by), deadline_now(), pushed_bytes, bytes, false};
    connect();
    if (!link)
      return;                                                               // connect() failed all.
    const bool overtakes = traffic_class_of(what) == traffic_class::urgent; // It has no push.
    if (is_open && (overtakes || (waiting.empty() && may_leave(open))))
      gather({number, std::move(what)}, open);
    else
      waiting.push_back({{number, std::move(what)}, now_of(*self)});
  }

  void send_waiting() {
    while (is_open && !waiting.empty()) {
      auto& [next, since] = waiting.front();
      auto& open = pending.at(next.number);
      if (!may_leave(open))
        return;
      memory->add_waited(now_of(*self) - since);
      gather(std::move(next), open);
      waiting.pop_front();
    }
  }

  /// Returns whether the window has room for the request, and takes memory for the push's copy. One
  /// request alone may always leave.
  bool may_leave(const open_request& open) {
    if (on_the_way_bytes != 0)
      return on_the_way_bytes + open.bytes <= limits.window_bytes
             && memory->take(open.pushed_bytes);
    memory->take_in_any_case(open.pushed_bytes);
    return true;
  }

  /// Adds a request to a frame. The frame leaves once requests that wait in the mailbox are in it.
  void gather(request_message next, open_request& open) {
    open.on_the_way = true;
    on_the_way_bytes += open.bytes;
    open.deadline = deadline_now();
    auto& list = traffic_class_of(next.what) == traffic_class::urgent ? urgent : bulk;
    if (list.bytes + open.bytes > together_bytes_max)
      leave(list);
    if (&list == &bulk && limits.key_cache)
      book.shorten(next); // Bulk requests leave in this order, or link and book end.
    list.requests.items.push_back(std::move(next));
    list.bytes += open.bytes;
    if (list.bytes > together_bytes_max || list.requests.items.size() == together_items_max)
      leave(list);
    else if (!std::exchange(leaving_soon, true))
      self->send(self, step_atom_v); // After the messages that wait.
  }

  void leave(leaving& which) {
    if (which.requests.items.empty())
      return;
    if (auto alive = board.lock())
      memory->add_sent(alive->send(*link, std::exchange(which.requests, {})));
    which = {};
  }

  void leave_all() {
    leaving_soon = false;
    if (!is_open)
      return;
    leave(urgent);
    leave(bulk);
  }

  void connect() {
    if (link)
      return;
    if (auto alive = board.lock())
      link = alive->connect(where, to_string(process_of(whom)), caf::actor_cast<link_owner>(self));
    else
      fail_all({errc::peer_lost, "this process is shutting down"});
  }

  void opened(link_id which, const hello& peer) {
    if (link != which)
      return;
    if (peer.from != whom) { // Another process has the port now.
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
    urgent = {};
    bulk = {};
    book = key_cache{};
    fail_all({errc::peer_lost, why.text});
  }

  void fail_all(const failure& why) {
    waiting.clear();
    for (auto& [unused, open] : std::exchange(pending, {})) {
      end(open);
      answers.add(open.by, why);
    }
    answers.send(self);
  }

  void receive(message& what) {
    auto* came = std::get_if<answer_list>(&what);
    if (came == nullptr)
      return; // The decoder lets other messages pass, but a server sends none.
    memory->add_received(came->frame_bytes);
    for (auto& each : came->items)
      std::visit([this](auto& x) { close(x.number, std::move(x.what)); }, each);
    send_waiting();
    answers.send(self);
  }

  void close(std::uint64_t number, std::variant<reply, failure> outcome) {
    const auto found = pending.find(number);
    if (found == pending.end() || !found->second.on_the_way)
      return; // The request has expired or was never sent.
    end(found->second);
    answers.add(found->second.by, std::move(outcome));
    pending.erase(found);
  }

  /// Fails requests whose deadline has passed. A request may wait at the server for others of its
  /// clock that wait here for the window. So requests on the way end first, which lets others
  /// leave. Then the requests end that still could not leave.
  void expire() {
    scanning = false;
    last_scan = now_of(*self);
    expire_if([](const open_request& x) { return x.on_the_way; });
    send_waiting();
    expire_if([](const open_request& x) { return !x.on_the_way; });
    std::erase_if(waiting,
                  [&](const waiting_request& x) { return !pending.contains(x.what.number); });
    answers.send(self);
    if (!pending.empty())
      scan_later();
  }

  template <class Predicate>
  void expire_if(Predicate which) {
    for (auto at = pending.begin(); at != pending.end();) {
      auto& open = at->second;
      if (open.deadline > last_scan || !which(open)) {
        ++at;
        continue;
      }
      end(open);
      answers.add(open.by, failure{errc::timed_out, "no answer in time"});
      at = pending.erase(at);
    }
  }

  time_point deadline_now() const {
    return last_scan + request_timeout + time_for_payload(open_bytes);
  }

  void scan_later() {
    if (std::exchange(scanning, true))
      return;
    last_scan = now_of(*self);
    self->delayed_send(self, deadline_scan_interval, tick_atom_v);
  }

  struct waiting_request {
    request_message what;
    time_point since{0};
  };

  void end(const open_request& what) {
    memory->give_back(what.on_the_way ? 2 * what.pushed_bytes : what.pushed_bytes);
    on_the_way_bytes -= what.on_the_way ? what.bytes : 0;
    open_bytes -= what.bytes;
  }

  pointer self = nullptr;
  link_dispatcher_ptr board;
  endpoint where;
  member_id whom;
  std::optional<link_id> link;
  bool is_open = false;
  key_cache book; ///< For the open link.
  send_limits limits;
  std::shared_ptr<push_quota> memory;
  std::deque<waiting_request> waiting; ///< For an open link with room in its window.
  leaving urgent, bulk;
  bool leaving_soon = false; ///< A step_atom is on its way.
  std::unordered_map<std::uint64_t, open_request> pending;
  std::uint64_t open_bytes = 0; ///< Sum over `pending`.
  bool scanning = false;        ///< A tick_atom is on its way.
  time_point last_scan{0};      ///< Deadlines count from it; at most one interval old.
  reply_batcher answers;
  std::uint64_t on_the_way_bytes = 0;
  std::uint64_t next_request = 1;

  static inline const char* name = "remote";
};

static_assert(!std::is_constructible_v<remote_shell, caf::event_based_actor*>);

remote_shell::handle::behavior_type run_remote(remote_shell::pointer self,
                                               link_dispatcher_ptr board, endpoint where,
                                               member_id whom, const send_limits& limits,
                                               std::shared_ptr<push_quota> memory) {
  auto& state = self->state;
  state.limits = limits;
  state.memory = std::move(memory);
  state.self = self;
  state.board = std::move(board);
  state.where = std::move(where);
  state.whom = whom;
  return {
    [&state](request& what) { return state.forward(std::move(what)); },
    [&state](request_list& what, const answer_sink& to) { state.forward(what, to); },
    [&state](step_atom) { state.leave_all(); },
    [&state](tick_atom) { state.expire(); },
    [&state](opened_atom, link_id link, const hello& peer) { state.opened(link, peer); },
    [&state](lost_atom, link_id link, const failure& why) { state.lost(link, why); },
    [&state](link_id, message& what) { state.receive(what); },
  };
}

} // namespace

kv_service spawn_remote(caf::actor_system& system, link_dispatcher_ptr board, endpoint where,
                        member_id whom, const send_limits& limits,
                        std::shared_ptr<push_quota> memory) {
  return system.spawn(run_remote, std::move(board), std::move(where), whom, limits,
                      std::move(memory));
}

} // namespace troupe::detail
