// Connects the transport's callbacks with the actors that own links. Only the actors of
// actors/roles/links use it.
#pragma once

#include "base/notice.hpp"
#include "actors/protocol/worker/flow_control.hpp"
#include "actors/inline_executor.hpp"
#include "actors/kv.hpp"
#include "actors/roles/links/unreached_peers.hpp"
#include "actors/transport/transport.hpp"
#include "base/log.hpp"
#include "serialization/wire.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::link_id)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::hello)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::message)

namespace troupe::detail {

/// Receives the events of links that an actor owns, in order.
using link_owner =
  caf::typed_actor<caf::reacts_to<opened_atom, link_id, hello>,
                   caf::reacts_to<lost_atom, link_id, failure>, caf::reacts_to<link_id, message>>;

/// Delivers messages of links to their owners. Requests and replies pass through their actors on
/// the transport's thread, by an inline executor. Statuses and desired state, whose handling may
/// take long, are handled on the scheduler's threads. Thread-safe.
class link_dispatcher {
public:
  /// Called on the transport's thread for each accepted link; returns its owner.
  using acceptor = std::function<std::optional<link_owner>(link_id, const hello&)>;

  link_dispatcher(caf::actor_system& system, hello self, acceptor accept, log_sink log,
                  notice_sink waits, transport_options options);

  /// Connects to the process that notices call `name`.
  link_id connect(const endpoint& where, const std::string& name, const link_owner& owner);
  std::size_t send(link_id link, const message& what) { return transport_->send(link, what); }
  void close(link_id link) { transport_->close(link); }
  troupe::transport& transport() { return *transport_; }
  /// Ends all links. Actors that hold the link dispatcher at this moment can still call it.
  void stop() { transport_->stop(); }

private:
  std::optional<link_owner> owner_of(link_id link);
  void write_log(log_level level, const std::string& text) const;
  void tell(const std::vector<reach_notice>& all) const;

  acceptor accept_;
  log_sink log_;
  notice_sink waits_;
  std::mutex mutex_;
  std::unordered_map<link_id, link_owner> owners_;
  unreached_peers unreached_;
  inline_executor executor_; ///< On the transport's thread.
  /// Last member: its thread ends before the members that callbacks use.
  std::unique_ptr<troupe::transport> transport_;
};

/// A weak reference for actors: process_links owns the link dispatcher and ends it first.
using link_dispatcher_ptr = std::weak_ptr<link_dispatcher>;

/// Returns a failure if values of `bytes` are too long for one message. Such a message would end
/// its link, again with each retry.
inline std::optional<failure> too_long(std::uint64_t bytes) {
  if (bytes <= wire::body_bytes_max)
    return std::nullopt;
  return failure{errc::shape_mismatch, "too many values for one message: " + std::to_string(bytes)
                                         + " bytes, at most "
                                         + std::to_string(wire::body_bytes_max)};
}

/// See process_links::to_servers.
kv_service spawn_remote(caf::actor_system& system, link_dispatcher_ptr dispatcher, endpoint where,
                        member_id whom, const send_limits& limits,
                        std::shared_ptr<push_quota> memory);

/// See process_links::to_replicas.
replica_sink spawn_replica_link(caf::actor_system& system, link_dispatcher_ptr dispatcher,
                                endpoint where, member_id whom);

/// Spawns the owner of an accepted link, which answers pushes and pulls from `target`. It passes
/// `peer`'s messages for replicas to `replicas`; null if there are none.
link_owner spawn_gateway(caf::actor_system& system, link_dispatcher_ptr dispatcher, link_id link,
                         const member_id& peer, kv_service target, replica_sink replicas);

/// See process_links::to_coordinator.
coordinator_handle spawn_uplink(caf::actor_system& system, link_dispatcher_ptr dispatcher,
                                endpoint where, member_handle self,
                                std::function<void(failure)> refused);

} // namespace troupe::detail
