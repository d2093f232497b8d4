#include "actors/graph/launch/local_lanes.hpp"

#include "caf/send.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

hello hello_of(const member_id& who) {
  hello made;
  made.from = who;
  return made;
}

} // namespace

lane_network local_lanes::network_of(const member_id& self) {
  return {
    [all = shared_from_this(), self](const member_address& to, const detail::link_owner& owner) {
      return all->connect(self, to, owner);
    },
    [all = shared_from_this()](link_id link, const message& what) { all->send(link, what); },
    [all = shared_from_this()](link_id link) { all->close(link); }};
}

void local_lanes::serve(const member_id& who, detail::link_owner owner) {
  const std::lock_guard lock{mutex_};
  served_[who] = std::move(owner);
}

link_id local_lanes::connect(const member_id& self, const member_address& to,
                             const detail::link_owner& owner) {
  const std::lock_guard lock{mutex_};
  const link_id here{++links_};
  const auto peer = served_.find(to.member);
  if (peer == served_.end()) {
    caf::anon_send(owner, lost_atom_v, here, failure{errc::peer_lost, "it is not there yet"});
    return here;
  }
  const link_id there{++links_};
  auto& to_peer = ends_[here] = {peer->second, there};
  auto& to_owner = ends_[there] = {owner, here};
  deliver(to_peer, opened_atom_v, there, hello_of(self));
  deliver(to_owner, opened_atom_v, here, hello_of(to.member));
  return here;
}

void local_lanes::send(link_id link, const message& what) {
  const std::lock_guard lock{mutex_};
  if (const auto found = ends_.find(link); found != ends_.end()) {
    if (const auto* const refused = std::get_if<rejection>(&what))
      deliver(found->second, lost_atom_v, found->second.there, refused->why);
    else
      deliver(found->second, found->second.there, what);
  }
}

void local_lanes::close(link_id link) {
  const std::lock_guard lock{mutex_};
  auto mine = ends_.extract(link);
  if (!mine)
    return;
  deliver(mine.mapped(), lost_atom_v, mine.mapped().there,
          failure{errc::peer_lost, "the other end closed the link"});
  ends_.erase(mine.mapped().there);
}

/// Sends a message to an end, behind all earlier ones.
template <class... Parts>
void local_lanes::deliver(link_end& to, Parts... parts) {
  if (!line_time_)
    return caf::anon_send(to.owner, std::move(parts)...);
  const auto now = system_->clock().now().time_since_epoch();
  to.last = std::max(to.last, now + line_time_());
  caf::delayed_anon_send(to.owner, to.last - now, std::move(parts)...);
}

} // namespace troupe
