// Elects a leader among several processes: the process that made a key in etcd, under a lease that
// it keeps alive.
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
  std::vector<endpoint> endpoints;
  std::string key;
  std::string who; ///< Value of the key: describes the leader to others.
  /// Requested time. etcd gives at least 2 s unless its --election-timeout is shorter than usual.
  /// Larger: a slower takeover, but longer outages of etcd pass unnoticed.
  std::chrono::seconds lease{2};
  std::function<void(std::string)> log; ///< Gets one line when the wait begins or its reason ends.
  /// Gets the reason of waiting for etcd when it changes; an empty text when the wait ends.
  std::function<void(std::string)> waits{};
};

/// Holds the lead. Thread-safe. A separate thread renews the lease.
///
/// Invariants:
/// (1) while held() is true, etcd lets no other process make the key, unless somebody removes it.
///     The time counts from before the request that renewed the lease was sent. A fifth of the
///     lease stays unused, for clocks that run at other rates and for messages in flight.
/// (2) a lead that was given up or ran out is not renewed any more.
class etcd_leadership {
public:
  using clock = std::chrono::steady_clock;

  /// Blocks until no other process leads and etcd confirms this one; also while etcd is out of
  /// reach. Errors: malformed and io_failed of etcd_client.
  static result<std::unique_ptr<etcd_leadership>> campaign(leadership_options options);
  /// Leaves the lease to run out.
  ~etcd_leadership();
  etcd_leadership(const etcd_leadership&) = delete;
  etcd_leadership& operator=(const etcd_leadership&) = delete;

  bool held() const { return clock::now() < held_until(); }
  clock::time_point held_until() const { return held_until_.load(); }
  /// Ends the lead at once, when it is known to be lost.
  void give_up() { held_until_ = clock::time_point::min(); }
  /// Returns a condition that holds while this process leads, for writes that need the lead.
  etcd_transaction::condition condition() const;
  /// Waits for `time`.
  void wait(std::chrono::milliseconds time);
  /// Returns the reason why the lead is not held any more.
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
