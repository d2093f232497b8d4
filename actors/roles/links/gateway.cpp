// A gateway answers the requests of one link from a kv of this process. It is a remote's other end.
#include "actors/roles/links/key_cache.hpp"
#include "actors/roles/links/link_dispatcher.hpp"
#include "actors/transport/frames/traffic_class.hpp"
#include "serialization/payload.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <utility>
#include <vector>

namespace troupe::detail {

namespace {

struct gateway_shell {
  using handle = link_owner::extend_with<answer_sink>;
  using pointer = handle::stateful_pointer<gateway_shell>;

  gateway_shell() = default;

  void receive(message& what) {
    if (closed)
      return;
    if (auto* news = std::get_if<replica_message>(&what); news != nullptr && replicas)
      return pass_on(std::move(*news));
    auto* asked = std::get_if<request_list>(&what);
    if (asked == nullptr)
      return close(); // A correct peer sends no other message.
    for (auto& each : asked->items)
      if (auto whole = slots.complete(each); !whole)
        return reject(whole.error());
    refuse_what_is_too_long(*asked);
    if (asked->items.empty())
      return;
    const auto sink = caf::actor_cast<answer_sink>(self);
    if (traffic_class_of(what) == traffic_class::urgent)
      self->send<caf::message_priority::high>(target, std::move(*asked), sink);
    else
      self->send(target, std::move(*asked), sink);
  }

  void pass_on(replica_message&& what) {
    if (what.from != peer || !traits_of(peer.role).holds_values)
      return close();
    self->send(replicas, std::move(what));
  }

  /// Refuses pulls whose replies would be too long, before the replies take memory.
  void refuse_what_is_too_long(request_list& asked) {
    answer_list refused;
    std::erase_if(asked.items, [&](const request_message& each) {
      auto why = each.what.pull ? too_long(payload_bytes(*each.what.pull)) : std::nullopt;
      if (!why)
        return false;
      refused.items.push_back(failure_message{each.number, *std::move(why)});
      return true;
    });
    if (!refused.items.empty())
      send(std::move(refused));
  }

  void reject(const failure& why) {
    send(rejection{why});
    close();
  }

  void answer(answer_list& what) {
    for (auto& each : what.items) {
      const auto* came = std::get_if<reply_message>(&each);
      if (came == nullptr || !came->what.pulled)
        continue;
      if (auto why = too_long(payload_bytes(*came->what.pulled)))
        each = failure_message{came->number, *std::move(why)};
    }
    send(std::move(what));
  }

  void lost() {
    self->demonitor(target.address());
    self->quit();
  }

  void send(const message& what) {
    if (auto alive = dispatcher.lock())
      alive->send(link, what);
  }

  void close() {
    closed = true;
    if (auto alive = dispatcher.lock())
      alive->close(link);
  }

  pointer self = nullptr;
  link_dispatcher_ptr dispatcher;
  link_id link;
  member_id peer;
  kv_service target;
  replica_sink replicas;
  key_slots slots;
  bool closed = false; ///< Later messages are dropped.

  static inline const char* name = "gateway";
};

static_assert(!std::is_constructible_v<gateway_shell, caf::event_based_actor*>);

gateway_shell::handle::behavior_type run_gateway(gateway_shell::pointer self,
                                                 link_dispatcher_ptr dispatcher, link_id link,
                                                 const member_id& peer, kv_service target,
                                                 replica_sink replicas) {
  auto& state = self->state;
  state.self = self;
  state.dispatcher = std::move(dispatcher);
  state.link = link;
  state.peer = peer;
  state.target = std::move(target);
  state.replicas = std::move(replicas);
  // A kv that has ended never replies, so the gateway closes the link to tell the peer.
  self->set_down_handler([&state](caf::down_msg&) { state.close(); });
  self->monitor(state.target);
  return {
    [](opened_atom, link_id, const hello&) {},
    [&state](lost_atom, link_id, const failure&) { state.lost(); },
    [&state](link_id, message& what) { state.receive(what); },
    [&state](answer_list& what) { state.answer(what); },
  };
}

} // namespace

link_owner spawn_gateway(caf::actor_system& system, link_dispatcher_ptr dispatcher, link_id link,
                         const member_id& peer, kv_service target, replica_sink replicas) {
  return system.spawn(run_gateway, std::move(dispatcher), link, peer, std::move(target),
                      std::move(replicas));
}

} // namespace troupe::detail
