// Implements the ends of the links of link_kills: one without actors, and one with.
#pragma once

#include "actors/graph/launch/actor_config.hpp"
#include "actors/roles/links/process_links.hpp"
#include "actors/transport/transport.hpp"
#include "bench/kills/kill_traffic.hpp"

#include "caf/actor_registry.hpp"
#include "caf/actor_system.hpp"
#include "caf/event_based_actor.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace troupe::bench {

/// The effect of one kill on one end.
struct link_end_report {
  endings requests;
  std::vector<double> told; ///< When the loss of the link, or of each open request, was told.
};

/// A transport: each side of a link sends requests and answers those of the other. One link at a
/// time. Thread-safe.
class plain_end {
public:
  plain_end(const transport_options& how, std::uint64_t seed);

  endpoint listen();
  void connect(const endpoint& where) { links_.connect(where); }
  /// Waits until requests of this side are answered. Returns false if they are not in time.
  bool wait_flowing();
  /// Sends one more request from the caller's thread, unless the link is lost.
  void send_more();
  bool told_lost() const;
  /// Waits for the loss of the link, then forgets the link.
  link_end_report take();

private:
  struct talk {
    link_id link;
    std::uint64_t last_number = 0;
    std::unordered_map<std::uint64_t, request> open;
    std::deque<request> held; ///< The last ones have to be readable after the end.
    endings count;
    bool lost = false;
    double lost_at = 0;
  };

  link_events events();
  // These require the lock.
  void opened(link_id link);
  void received(link_id link, message& what);
  void lost(link_id link);
  void send_request();
  void take_answer(const reply_message& came);
  void take_request(link_id link, request_message& came);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  traffic_source source_;
  std::optional<talk> talk_;
  std::uint64_t astray_ = 0; ///< Events without a link.
  transport links_;          ///< Last: its callbacks use the rest.
};

/// A node: one side asks a remote kv, the other has the kv. Thread-safe.
class kv_end {
public:
  kv_end(const transport_options& how, const member_id& self, std::uint64_t seed);

  /// Listens, and serves a kv.
  endpoint listen();
  /// Keeps requests open at the kv of `whom` until one fails.
  void ask(const endpoint& where, const member_id& whom);
  /// Wait until requests of this side, or of others, are answered.
  bool wait_flowing();
  bool wait_served();
  /// Waits for the end of all requests. The report counts requests of others only if their data are
  /// corrupt.
  link_end_report take();
  std::size_t actors() { return system_.registry().running(); }

private:
  void ask_one(caf::event_based_actor* self, const kv& target);
  void end(std::uint64_t number, const std::optional<failure>& why, const reply* answer);
  kv_service spawn_kv();
  reply answer_to(const request& what);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  traffic_source source_;
  endings count_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, request> open_;
  std::vector<double> told_;
  std::uint64_t served_ = 0;
  actor_config config_;
  caf::actor_system system_{config_};
  process_links links_;
};

/// Returns the identity for this program's hello; `index` and `start` tell processes apart.
member_id identity_of(std::uint32_t index, std::uint64_t start);

} // namespace troupe::bench
