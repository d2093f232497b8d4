// One process's end of all its links: makes actors that stand for others (remote kvs, the
// coordinator), and lets others reach its own. The actors on both sides do not notice the link.
#pragma once

#include "actors/flow_control.hpp"
#include "actors/kv.hpp"
#include "actors/notice_sink.hpp"
#include "actors/transport/transport.hpp"

#include "caf/actor_system.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace troupe {

/// Thread-safe. The destructor closes all links; actors made by it then answer peer_lost.
class node {
public:
  /// `log`: gets one line for each peer that was turned away; called on the transport's thread.
  /// `waits`: takes the peers that are not reached for seconds, and the reason if none can connect.
  node(caf::actor_system& system, hello self, std::function<void(std::string)> log = {},
       transport_options options = {}, const send_limits& limits = {}, notice_sink waits = {});
  ~node();
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  /// Starts to accept links. Errors: in_use, io_failed, invalid_argument.
  result<endpoint> listen(const endpoint& where);
  result<endpoint> listen_on(int descriptor);

  /// Serves accepted links: pushes and pulls go to `target`, messages of replicas to `replicas`.
  /// Requests of peers that may pack go to `expander`, which is in front of `target`.
  void serve_values(kv_service target, replica_sink replicas = {}, kv_service expander = {});
  /// Statuses that arrive on accepted links go to this coordinator.
  void serve_coordinator(coordinator_service target);

  // Connectors may outlive the node, but not the actor system; what they make then cannot connect.

  /// Makes kvs of other processes. Each connects with the first request; a broken link fails open
  /// requests with peer_lost, and the next request connects again. A process at that address which
  /// is another incarnation is treated as gone. An invalid address is like one without a process.
  /// A request beyond the limits of a link waits; a push beyond the limit of the process is refused
  /// with `overloaded`.
  std::function<kv_service(const chain_entry&)> to_servers() const;
  /// Makes senders to replicas in other processes. Each connects with the first message; messages
  /// that wait when a link is lost are lost with it.
  std::function<replica_sink(const server_address&)> to_peers() const;
  /// Time that requests have waited because of them, all together.
  std::chrono::nanoseconds window_wait() const;
  /// Returns the counts of all of them together.
  request_traffic traffic() const;

  /// The coordinator in another process. Keeps connecting, with a pause that grows from 20 ms to
  /// 500 ms; of reports made meanwhile the newest is sent then. Desired states go to the member
  /// that the
  /// connector is given. `refused`: called once, on an actor's thread, when the coordinator turns
  /// this process away for good, which is before the link opens; a link that was open is made anew.
  coordinator_connector to_coordinator(const endpoint& where,
                                       std::function<void(failure)> refused) const;

private:
  struct services;
  std::shared_ptr<services> services_;
};

} // namespace troupe
