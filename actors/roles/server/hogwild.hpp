// Holds values that the threads of one process write without locks: hogwild (Recht, Re, Wright,
// Niu 2011). Each worker has its own kv in front of the shared memory, so that steps run in
// parallel. A member reports to the coordinator as a server would.
#pragma once

#include "actors/kv.hpp"
#include "actors/tables/initial_values.hpp"

#include "caf/actor_system.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace troupe {

/// Values and optimiser state that threads share. Elements are read and written as relaxed atomics:
/// an update may overwrite a part of another one. There are no versions and no exactly-once
/// updates.
class shared_tables {
public:
  /// Fills the values with the tables' initialisers. `given`: takes their place.
  explicit shared_tables(const job_spec& job, const given_values& given = {});
  ~shared_tables();

  /// Takes the optimiser step of each piece and adds the batch to the applied batches.
  /// Errors: non_finite (names worker and table; no value changed), shape_mismatch.
  result<void> apply(const push_request& what);
  /// Checks whether read() can copy the ranges. Errors: shape_mismatch.
  result<void> check(const std::vector<range>& ranges) const;
  /// Returns copies of the ranges. Errors: shape_mismatch.
  result<std::vector<piece>> read(const std::vector<range>& ranges);

  const job_spec& job() const { return job_; }
  batch_set batches_applied() const;
  server_counters counters() const;

private:
  struct table;
  result<void> check(const range& where) const;
  result<void> check(const push_request& what) const;

  job_spec job_;
  std::vector<std::unique_ptr<table>> tables_;
  std::shared_ptr<buffer_pool> pool_;
  mutable std::mutex mutex_; ///< Guards the members below, not the values.
  batch_set applied_;
  server_counters counters_;
};

/// Spawns a kv in front of `tables`; each worker needs its own. A request is applied and answered
/// as a whole or refused as a whole.
kv spawn_hogwild(caf::actor_system& system, std::shared_ptr<shared_tables> tables);

/// Spawns a member that reports `tables` to the coordinator as a server; `self` is server 0.
member_handle spawn_hogwild_server(caf::actor_system& system, member_id self,
                                   std::shared_ptr<shared_tables> tables,
                                   coordinator_connector connect);

} // namespace troupe
