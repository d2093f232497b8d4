#include "actors/roles/links/channel_actor.hpp"

#include "caf/send.hpp"
#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace troupe {

namespace {

constexpr std::chrono::milliseconds lane_tick{10};

/// The links that this member made or accepted, by both of their names.
class network_links final : public lane_links {
public:
  struct known {
    lane_link lane;
    std::optional<member_id> expected{}; ///< The member that it was made to; none: accepted.
  };

  explicit network_links(lane_network network) : network_(std::move(network)) {}

  /// Sets the actor that hears of the links. Call it before connect().
  void give_to(detail::link_owner owner) { owner_ = std::move(owner); }

  void connect(lane_link lane, const member_address& to) override {
    // The owner must not look for the link before it is stored.
    const std::lock_guard lock{mutex_};
    add(network_.connect(to, owner_), {lane, to.member});
  }
  void send(lane_link lane, channel_message what) override { send_any(lane, std::move(what)); }
  void refuse(lane_link lane, const failure& why) override {
    send_any(lane, rejection{why});
    close(lane);
  }
  /// A link that is closed here is never heard of again.
  void close(lane_link lane) override {
    if (const auto link = link_of(lane)) {
      network_.close(*link);
      forget(*link);
    }
  }

  void accepted(link_id link, lane_link lane) {
    const std::lock_guard lock{mutex_};
    add(link, {lane});
  }
  std::optional<known> find(link_id link) {
    const std::lock_guard lock{mutex_};
    const auto found = lanes_.find(link);
    return found == lanes_.end() ? std::nullopt : std::optional{found->second};
  }
  void forget(link_id link) {
    const std::lock_guard lock{mutex_};
    if (const auto gone = lanes_.extract(link))
      links_.erase(gone.mapped().lane);
  }

private:
  void add(link_id link, known what) {
    links_[what.lane] = link;
    lanes_[link] = what;
  }
  std::optional<link_id> link_of(lane_link lane) {
    const std::lock_guard lock{mutex_};
    const auto found = links_.find(lane);
    return found == links_.end() ? std::nullopt : std::optional{found->second};
  }
  void send_any(lane_link lane, const message& what) {
    if (const auto link = link_of(lane))
      network_.send(*link, what);
  }

  lane_network network_;
  detail::link_owner owner_;
  std::mutex mutex_;
  std::map<link_id, known> lanes_;
  std::map<lane_link, link_id> links_;
};

struct channel_shell {
  using pointer = channel_handle::stateful_pointer<channel_shell>;

  channel_shell() = default;

  void opened(link_id link, const hello& peer) {
    const auto known = links->find(link);
    if (!known)
      links->accepted(link, room->accepted(peer.from));
    else if (known->expected == peer.from)
      room->opened(known->lane);
    else // Another process has the port now.
      end(known->lane);
  }

  void received(link_id link, message& what) {
    const auto known = links->find(link);
    if (!known)
      return;
    if (auto* const mine = std::get_if<channel_message>(&what))
      room->received(known->lane, std::move(*mine));
    else // A correct peer sends no other message.
      end(known->lane);
  }

  void end(lane_link lane) {
    links->close(lane);
    room->closed(lane, failure{errc::peer_lost, "it broke the protocol of lanes"});
  }

  void lost(link_id link, const failure& why) {
    const auto known = links->find(link);
    links->forget(link);
    if (known)
      room->closed(known->lane, why);
  }

  std::shared_ptr<port_room> room;
  std::shared_ptr<network_links> links;

  static inline const char* name = "channels";
};

static_assert(!std::is_constructible_v<channel_shell, caf::event_based_actor*>);

channel_handle::behavior_type run_channels(channel_shell::pointer self,
                                           std::shared_ptr<port_room> room,
                                           std::shared_ptr<network_links> links) {
  auto& state = self->state;
  state.room = std::move(room);
  state.links = std::move(links);
  return {
    [&state](opened_atom, link_id link, const hello& peer) { state.opened(link, peer); },
    [&state](lost_atom, link_id link, const failure& why) { state.lost(link, why); },
    [&state](link_id link, message& what) { state.received(link, what); },
    [&state](const std::vector<member_address>& all) { state.room->listed(all); },
    [self, &state](tick_atom) {
      state.room->tick();
      self->delayed_send(self, lane_tick, tick_atom_v);
    },
  };
}

} // namespace

channel_handle spawn_channels(caf::actor_system& system, const std::shared_ptr<port_room>& room,
                              lane_network network, port_surroundings around) {
  const auto links = std::make_shared<network_links>(std::move(network));
  const auto made = system.spawn(run_channels, room, links);
  links->give_to(made);
  around.clock = [&system] { return system.clock().now().time_since_epoch(); };
  room->begin(std::move(around), links);
  caf::anon_send(made, tick_atom_v); // The room has no clock before.
  return made;
}

} // namespace troupe
