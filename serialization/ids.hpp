// Integers with a meaning. Ids of different kinds never mix by accident.
#pragma once

#include "serialization/role.hpp"

#include <compare>
#include <cstdint>
#include <functional>

namespace troupe {

template <class Tag, class Rep>
struct id {
  Rep value = 0;

  auto operator<=>(const id&) const = default;
};

/// Position of a table in the job's list of tables.
using table_id = id<struct table_tag, std::uint32_t>;
/// Unit of placement and recovery; below job_spec::partitions.
using partition_id = id<struct partition_tag, std::uint32_t>;
/// Index of a process within its role, counted from 0. It survives a restart of the process.
using server_id = id<struct server_tag, std::uint32_t>;
using worker_id = id<struct worker_tag, std::uint32_t>;
/// A group of partitions that the same servers replicate, in one order of updates.
using shard_id = id<struct shard_tag, std::uint32_t>;
/// Random number drawn for each start of a process; distinguishes a restarted process.
using incarnation_id = id<struct incarnation_tag, std::uint64_t>;
/// Number of a configuration (members, addresses, partition map). Only grows.
using config_id = id<struct config_tag, std::uint64_t>;
/// Number of a history: it grows when every server rolls back together.
using generation_id = id<struct generation_tag, std::uint64_t>;
/// Global batch number: pass * job_spec::batches_per_epoch + index within the pass.
using batch_id = id<struct batch_tag, std::uint64_t>;

/// Identifies one start of one process.
struct member_id {
  troupe::role role = role::observer;
  std::uint32_t index = 0;
  incarnation_id incarnation;

  auto operator<=>(const member_id&) const = default;
};

/// Returns the id of one start of a server or a worker; without `incarnation` it names the slot.
inline member_id member_of(server_id who, incarnation_id incarnation = {}) {
  return {role::server, who.value, incarnation};
}
inline member_id member_of(worker_id who, incarnation_id incarnation = {}) {
  return {role::worker, who.value, incarnation};
}

} // namespace troupe

template <class Tag, class Rep>
struct std::hash<troupe::id<Tag, Rep>> {
  std::size_t operator()(const troupe::id<Tag, Rep>& x) const noexcept {
    return std::hash<Rep>{}(x.value);
  }
};
