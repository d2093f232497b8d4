// Which of several processes leads: the one that made a key in etcd, under a lease that it keeps
// alive.
#pragma once

#include "base/error.hpp"
#include "storage/etcd_client.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace troupe::storage {

struct leadership_options {
  std::vector<etcd_endpoint> endpoints;
  std::string key;
  std::string who; ///< Value of the key: what others may want to know of the leader.
  /// Asked of etcd, which gives 2 s at least unless its --election-timeout is shorter than usual.
  /// Larger: a slower takeover, and longer outages of etcd that nobody notices.
  std::chrono::seconds lease{2};
  std::function<void(std::string)> log; ///< Gets one line when the wait begins or its reason ends.
  /// Gets why it waits for etcd when that changes; an empty text where it waits no longer.
  std::function<void(std::string)> waits{};
};

/// Thread-safe. A thread of its own renews the lease.
///
/// Invariants:
/// (1) while held() is true, etcd lets nobody else make the key (but for someone who removes it).
///     It counts from before the request that renewed the lease was sent, and a fifth of the lease
///     stays unused, for clocks that run at other rates and for what is on its way.
/// (2) a lead that was given up or ran out is not renewed any more.
class etcd_leadership {
public:
  using clock = std::chrono::steady_clock;

  /// Blocks until nobody else leads and etcd says that this process does; also while etcd is out of
  /// reach. Errors: malformed and io_failed of etcd_client.
  static result<std::unique_ptr<etcd_leadership>> campaign(leadership_options options);
  /// The lease runs out by itself.
  ~etcd_leadership();
  etcd_leadership(const etcd_leadership&) = delete;
  etcd_leadership& operator=(const etcd_leadership&) = delete;

  bool held() const { return clock::now() < held_until(); }
  clock::time_point held_until() const { return held_until_.load(); }
  /// The lead is known to be lost.
  void give_up() { held_until_ = clock::time_point::min(); }
  /// Holds of the key as long as this process leads; for what may be written only then.
  etcd_transaction::condition condition() const;
  /// Why it is not held any more.
  failure lost() const;

private:
  explicit etcd_leadership(leadership_options options);
  result<bool> try_to_lead();
  result<bool> take(const etcd_lease& lease, clock::time_point asked_at);
  void keep();
  void renew();
  clock::time_point end_of(std::chrono::seconds time, clock::time_point asked_at) const;

  const leadership_options options_;
  const etcd_client client_;
  etcd_lease lease_;
  std::int64_t revision_ = 0;
  std::atomic<clock::time_point> held_until_{clock::time_point::min()};
  mutable std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ = false;
  std::string last_problem_;
  std::thread keeper_;
};

} // namespace troupe::storage
