// Holds one process's ends of all its links. It makes actors that stand for actors of other
// processes (remote kvs, the coordinator), and lets other processes reach its own actors. The
// actors on both sides do not notice the link.
#pragma once

#include "base/notice.hpp"
#include "actors/protocol/worker/flow_control.hpp"
#include "actors/kv.hpp"
#include "actors/roles/links/channel_actor.hpp"
#include "actors/transport/transport.hpp"
#include "base/log.hpp"

#include "caf/actor_system.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe {

/// Thread-safe. The destructor closes all links; their actors then answer peer_lost.
class process_links {
public:
  /// `log`: called on the transport's thread with a line for each peer that was turned away, for
  /// each notice, and at level debug for each link. `waits`: gets notices about peers that cannot
  /// be reached for seconds, and the reason if no peer can connect.
  process_links(caf::actor_system& system, hello self, log_sink log = {},
                transport_options options = {}, const send_limits& limits = {},
                notice_sink waits = {});
  ~process_links();
  process_links(const process_links&) = delete;
  process_links& operator=(const process_links&) = delete;

  /// Starts to accept links. Port 0 is one of `ports`, or any.
  /// Errors: in_use, io_failed, invalid_argument.
  result<endpoint> listen(const endpoint& where, std::optional<port_range> ports = {});
  result<endpoint> listen_on(int descriptor);

  /// Sends pushes and pulls from accepted links to `target`, and servers' messages for replicas to
  /// `replicas`. Requests of peers that may pack go to `expander`, which is in front of `target`.
  void serve_values(kv_service target, replica_sink replicas = {}, kv_service expander = {});
  /// Gives accepted links of members that send parcels to `owner`.
  void serve_lanes(detail::link_owner owner);
  /// Returns the links of this process, for the lanes of its members.
  lane_network lanes() const;
  /// Sends statuses that arrive on accepted links to `target`.
  void serve_coordinator(coordinator_service target);

  // Connectors may outlive the links, but not the actor system. Actors that they make after the
  // links' end reach no process.

  /// Returns a maker of kvs that stand for servers in other processes. A kv connects with its first
  /// request. A broken link fails open requests with peer_lost; the next request connects again.
  /// If another incarnation has the address, the server counts as gone. An invalid address is
  /// treated as one at which no process answers. Requests beyond a link's window wait. A push
  /// beyond the process's memory limit is refused with `overloaded`.
  std::function<kv_service(const member_address&)> to_servers() const;
  /// Returns a maker of senders to replicas in other processes. A sender connects with its first
  /// message. Messages that were not sent when a link is lost are lost too.
  std::function<replica_sink(const member_address&)> to_replicas() const;
  /// Returns the total time that requests waited for a link to open or for room in its window.
  std::chrono::nanoseconds window_wait() const;
  /// Returns the bytes of all requests and their replies.
  request_traffic traffic() const;

  /// Returns a connector to the coordinator in another process. It keeps connecting, with a pause
  /// that grows from 20 ms to 500 ms, and then sends the newest status made meanwhile. Desired
  /// state goes to the member that the connector is given. `refused`: called once, on an actor's
  /// thread, when the coordinator turns this process away for good. That happens only before the
  /// link opens; a link that was open is made anew.
  coordinator_connector to_coordinator(const endpoint& where,
                                       std::function<void(failure)> refused) const;

private:
  struct services;
  std::shared_ptr<services> services_;
};

} // namespace troupe
