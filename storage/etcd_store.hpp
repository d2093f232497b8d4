// The coordinator's memory in etcd, for several processes of which one leads.
//
//   /troupe/JOB/leader   who leads; made under a lease
//   /troupe/JOB/state    what coordinator_store.hpp keeps
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
  std::string who;   ///< For others: address, process.
  std::function<void(std::string)> log;
  std::function<void(std::string)> waits{}; ///< As of leadership_options.
};

/// What is saved is written only if this process leads at that moment, so a deposed one never
/// overwrites what its successor stored. While etcd does not answer, calls try again until the
/// lead is lost, and then fail as `fenced`.
class etcd_store : public coordinator_store {
public:
  /// Blocks until this process leads. Errors: those of etcd_leadership.
  static result<std::unique_ptr<etcd_store>> campaign(const etcd_candidate& who);
  /// For a launcher, before the first coordinator of a run: waits for the lease of an earlier run
  /// to end, and removes its state unless it is to be kept.
  /// Errors: those of etcd_client; in_use where a coordinator of the job leads.
  static result<void> prepare(const etcd_address& etcd, bool keep_state);
  /// For a launcher that saw a coordinator's process end: if it led, who stands by need not wait
  /// for its lease to run out. `who`: as it campaigned. Blocks for 1 s at most.
  /// Errors: those of etcd_client.
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
  std::int64_t revision_ = 0; ///< Of the state, when it was read or saved last.
};

} // namespace troupe::storage
