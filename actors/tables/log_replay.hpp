// Rebuilds a replica's state from its local snapshot and log.
#pragma once

#include "actors/tables/table_store.hpp"
#include "base/buffer.hpp"
#include "base/error.hpp"
#include "storage/local_state.hpp"

#include <memory>
#include <vector>

namespace troupe {

struct replica_past {
  std::shared_ptr<table_store> values;
  std::vector<shard_partition> partitions;
};

/// Takes the steps of the log's entries in order, each once: the snapshot may contain the first
/// ones, and the log may have entries twice. As before, an entry whose gradient is not finite
/// changes nothing. Errors: damaged.
result<replica_past> replay_log(const job_spec& job, const storage::local_state& kept,
                                const std::shared_ptr<buffer_pool>& pool,
                                const server_functions& functions = {});

} // namespace troupe
