// Stores the coordinator's state in etcd, for several processes of which one leads.
//
//   /troupe/JOB/leader   the leader; made under a lease
//   /troupe/JOB/state    the state of coordinator_store.hpp
#pragma once

#include "base/error.hpp"
#include "storage/coordinator_store.hpp"
#include "storage/etcd_client.hpp"
#include "storage/etcd_leadership.hpp"

#include <functional>
#include <memory>
#include <string>

namespace troupe::storage {

struct etcd_candidate {
  etcd_address etcd; ///< With a job.
  std::string who;   ///< Describes the process to others: address, process.
  std::function<void(std::string)> log;
  std::function<void(std::string)> waits{}; ///< As in leadership_options.
};

/// Saves only if this process leads at that moment, so a deposed leader never overwrites its
/// successor's state. While etcd does not answer, calls try again until the lead is lost, and then
/// fail with `fenced`.
class etcd_store : public coordinator_store {
public:
  /// Blocks until this process leads. Errors: those of etcd_leadership.
  static result<std::unique_ptr<etcd_store>> campaign(const etcd_candidate& who);
  /// Is for a launcher, before the first coordinator of a run. Waits for the lease of an earlier
  /// run to end, and removes its state unless `keep_state`. Errors: those of etcd_client; in_use if
  /// a coordinator of the job leads.
  static result<void> prepare(const etcd_address& etcd, bool keep_state);
  /// Is for a launcher that saw a coordinator's process end. If it led, removes its key, so that a
  /// standby need not wait for the lease to run out. `who`: as it campaigned. Blocks for 1 s at
  /// most. Errors: those of etcd_client.
  static result<void> mark_dead(const etcd_address& etcd, const std::string& who);

  result<coordinator_state> load() override;
  result<void> save(const coordinator_state& what) override;
  result<void> check_lead() const override;

private:
  etcd_store(const etcd_candidate& who, std::unique_ptr<etcd_leadership> lead);
  template <class Call>
  auto insist(Call call) const -> decltype(call());

  const etcd_client client_;
  const std::string key_;
  const std::unique_ptr<etcd_leadership> lead_;
  std::int64_t revision_ = 0; ///< Revision of the state when it was last read or saved.
};

} // namespace troupe::storage
