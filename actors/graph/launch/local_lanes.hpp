// Joins the lanes of members in one process: handles of actors take the place of links.
#pragma once

#include "actors/graph/launch/simulation.hpp"
#include "actors/roles/links/channel_actor.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace troupe {

/// Thread-safe. A link breaks only when one of its ends closes it.
class local_lanes : public std::enable_shared_from_this<local_lanes> {
public:
  /// `simulated`: draws the times of messages; null: they take none.
  explicit local_lanes(caf::actor_system& system, simulation* simulated = nullptr)
      : system_(&system), line_time_(simulated ? simulated->line_times() : drawn_time{}) {}

  /// Returns the links of a member. They keep this object alive.
  lane_network network_of(const member_id& self);
  /// Makes a member reachable for others.
  void serve(const member_id& who, detail::link_owner owner);

private:
  /// The other end of a link, as one end sees it.
  struct link_end {
    detail::link_owner owner;
    link_id there;
    time_point last{0}; ///< When the last message arrives.
  };

  link_id connect(const member_id& self, const member_address& to, const detail::link_owner& owner);
  void send(link_id link, const message& what);
  void close(link_id link);
  template <class... Parts>
  void deliver(link_end& to, Parts... parts);

  caf::actor_system* system_;
  drawn_time line_time_; ///< Null: messages take no time.
  std::mutex mutex_;
  std::uint64_t links_ = 0; ///< Links that were made so far.
  std::map<member_id, detail::link_owner> served_;
  std::map<link_id, link_end> ends_;
};

} // namespace troupe
