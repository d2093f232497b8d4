// An uplink is a coordinator_handle that stands for the coordinator in another process.
#include "actors/roles/links/link_dispatcher.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <algorithm>
#include <utility>

namespace troupe::detail {

namespace {

constexpr std::chrono::milliseconds connect_pause_min{20};
constexpr std::chrono::milliseconds connect_pause_max{500};

struct uplink_shell {
  using handle = coordinator_handle::extend_with<link_owner>::extend<caf::reacts_to<tick_atom>>;
  using pointer = handle::stateful_pointer<uplink_shell>;

  uplink_shell() = default;

  void forward(const status_message& what) {
    if (is_open) {
      if (auto alive = dispatcher.lock())
        alive->send(*link, what);
    } else {
      waiting = what;
      connect();
    }
  }

  void connect() {
    if (link || pausing || turned_away)
      return;
    if (auto alive = dispatcher.lock())
      link = alive->connect(where, "the coordinator", caf::actor_cast<link_owner>(self));
  }

  void opened(link_id which, const hello& peer) {
    if (link != which)
      return;
    if (!traits_of(peer.from.role).leads_job) {
      if (auto alive = dispatcher.lock())
        alive->close(which);
      return lost(which, {errc::untrusted, to_string(where) + " is no coordinator"});
    }
    is_open = true;
    pause = connect_pause_min;
    if (waiting)
      forward(*std::exchange(waiting, std::nullopt));
  }

  void lost(link_id which, const failure& why) {
    if (link != which)
      return;
    const bool was_open = std::exchange(is_open, false);
    link.reset();
    // A process accepted once is not turned away for good: a new link cures garbage on a link.
    if (!was_open && reaction_to(why.code) == reaction::stop) {
      turned_away = true;
      if (refused)
        refused(why);
      return;
    }
    pausing = true;
    self->delayed_send(self, pause, tick_atom_v);
    pause = std::min(2 * pause, connect_pause_max);
  }

  void receive(message& what) {
    if (auto* mine = std::get_if<desired_state>(&what))
      self->send(target, std::move(*mine));
  }

  pointer self = nullptr;
  link_dispatcher_ptr dispatcher;
  endpoint where;
  member_handle target;
  std::function<void(failure)> refused;
  std::optional<status_message> waiting;
  std::optional<link_id> link;
  bool is_open = false;
  bool pausing = false;
  bool turned_away = false;
  std::chrono::milliseconds pause = connect_pause_min;

  static inline const char* name = "uplink";
};

static_assert(!std::is_constructible_v<uplink_shell, caf::event_based_actor*>);

uplink_shell::handle::behavior_type run_uplink(uplink_shell::pointer self,
                                               link_dispatcher_ptr dispatcher, endpoint where,
                                               member_handle target,
                                               std::function<void(failure)> refused) {
  auto& state = self->state;
  state.self = self;
  state.dispatcher = std::move(dispatcher);
  state.where = std::move(where);
  state.target = std::move(target);
  state.refused = std::move(refused);
  state.connect();
  return {
    [&state](const status_message& what, const member_handle&) { state.forward(what); },
    [&state](opened_atom, link_id link, const hello& peer) { state.opened(link, peer); },
    [&state](lost_atom, link_id link, const failure& why) { state.lost(link, why); },
    [&state](link_id, message& what) { state.receive(what); },
    [&state](tick_atom) {
      state.pausing = false;
      state.connect();
    },
  };
}

} // namespace

coordinator_handle spawn_uplink(caf::actor_system& system, link_dispatcher_ptr dispatcher,
                                endpoint where, member_handle self,
                                std::function<void(failure)> refused) {
  return system.spawn(run_uplink, std::move(dispatcher), std::move(where), std::move(self),
                      std::move(refused));
}

} // namespace troupe::detail
