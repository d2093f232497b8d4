// A replica_link is a replica_sink that stands for a server in another process.
#include "actors/protocol/process_name.hpp"
#include "actors/roles/links/link_dispatcher.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <utility>
#include <vector>

namespace troupe::detail {

namespace {

struct replica_link_shell {
  using handle = replica_sink::extend_with<link_owner>;
  using pointer = handle::stateful_pointer<replica_link_shell>;

  replica_link_shell() = default;

  /// Sends a message, or keeps it until the link opens. If the link fails, waiting messages are
  /// lost, as any message between replicas may be.
  void forward(replica_message& what) {
    const auto alive = dispatcher.lock();
    if (!alive)
      return;
    if (!link)
      link = alive->connect(where, to_string(process_of(whom)), caf::actor_cast<link_owner>(self));
    if (is_open)
      alive->send(*link, what);
    else if (waiting.size() < waiting_max)
      waiting.push_back(std::move(what));
  }

  void opened(link_id which, const hello& peer) {
    if (link != which)
      return;
    const auto alive = dispatcher.lock();
    if (!alive)
      return;
    is_open = peer.from == whom;
    if (!is_open) // Another process has the port now.
      alive->close(which);
    for (const auto& each : std::exchange(waiting, {}))
      if (is_open)
        alive->send(which, each);
  }

  void lost(link_id which) {
    if (link != which)
      return;
    link.reset();
    is_open = false;
    waiting.clear();
  }

  static constexpr std::size_t waiting_max = 1024;

  pointer self = nullptr;
  link_dispatcher_ptr dispatcher;
  endpoint where;
  member_id whom;
  std::optional<link_id> link;
  bool is_open = false;
  std::vector<replica_message> waiting; ///< Sent when the link opens.

  static inline const char* name = "replica_link";
};

static_assert(!std::is_constructible_v<replica_link_shell, caf::event_based_actor*>);

replica_link_shell::handle::behavior_type run_replica_link(replica_link_shell::pointer self,
                                                           link_dispatcher_ptr dispatcher,
                                                           endpoint where, member_id whom) {
  auto& state = self->state;
  state.self = self;
  state.dispatcher = std::move(dispatcher);
  state.where = std::move(where);
  state.whom = whom;
  return {
    [&state](replica_message& what) { state.forward(what); },
    [&state](opened_atom, link_id link, const hello& peer) { state.opened(link, peer); },
    [&state](lost_atom, link_id link, const failure&) { state.lost(link); },
    [](link_id, message&) {}, // A server replies over its own link.
  };
}

} // namespace

replica_sink spawn_replica_link(caf::actor_system& system, link_dispatcher_ptr dispatcher,
                                endpoint where, member_id whom) {
  return system.spawn(run_replica_link, std::move(dispatcher), std::move(where), whom);
}

} // namespace troupe::detail
