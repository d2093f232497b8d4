// Configurations of chains, and messages between their replicas, as plain values.
// actors/protocol/chain.hpp is the protocol.
#pragma once

#include "serialization/ids.hpp"
#include "serialization/push_pull.hpp"
#include "serialization/snapshot.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace troupe {

/// The servers that replicate some partitions, in one configuration.
struct chain_config {
  config_id config;                ///< Number of the configuration; 0: none.
  generation_id generation;        ///< Generation of the history that its log continues.
  std::vector<member_id> members;  ///< Head first, tail last.
  std::optional<member_id> joiner; ///< Not a member yet: the tail copies the state to it.

  bool operator==(const chain_config&) const = default;
};

/// The coordinator's durable data on one chain, sent to all members.
struct chain_metadata {
  chain_config active; ///< Configuration 0: not started yet.
  /// Checkpoint with which the newest configuration's generation begins; 0: initial values.
  std::uint64_t base_checkpoint = 0;
  std::optional<chain_config> proposed; ///< Becomes active when members of both configurations have
                                        ///< sealed.

  bool operator==(const chain_metadata&) const = default;
};

/// A replica's status of one chain.
struct chain_status {
  generation_id generation;   ///< Generation of its state.
  config_id config;           ///< Number of the active configuration in which it acts.
  config_id sealed;           ///< It appends no entry of an earlier configuration.
  bool complete = false;      ///< It holds all that a member must hold.
  bool joiner_synced = false; ///< Tail: no entry becomes final that the joiner of `epoch` lacks.
  /// It has waited long, without progress, for the replica behind it; a joiner, for the tail.
  bool stalled = false;

  bool operator==(const chain_status&) const = default;
};

// -- messages between replicas --

/// The place of an entry in the log; comes with the entry.
struct append_message {
  config_id config;
  std::uint64_t index = 0;
  std::uint64_t committed = 0; ///< The sender knows entries up to this index to be final.
};
/// Entries up to `index` are final: every member has them.
struct committed_message {
  config_id config;
  std::uint64_t index = 0;
};
/// From a joiner to the tail: it has all entries up to `last`.
struct joined_message {
  config_id config;
  std::uint64_t last = 0;
};
/// The version of a block, or of a slab of a sparse table, that a replica holds.
struct held_version {
  partition_id partition;
  table_id table;
  std::uint64_t number = 0; ///< block_image::block or slab_image::slab.
  std::uint64_t version = 0;

  auto operator<=>(const held_version&) const = default;
};
/// From a joiner to the tail: a request for part `part` of a copy of the state. The first request
/// of a configuration makes the tail pin the copy, without blocks and slabs that the joiner holds.
struct copy_request {
  config_id config;
  std::uint32_t part = 0;
  std::vector<held_version> held = {}; ///< Blocks and slabs of a past state of this generation;
                                       ///< with part 0.
};
/// A piece of one partition's state. All parts together are the state at `index`.
struct copy_part {
  config_id config;
  std::uint64_t index = 0;
  std::uint32_t part = 0;
  std::uint32_t parts = 0;
  partition_image image; ///< Some of its blocks and slabs; version and applied batches are those of
                         ///< the whole.
  std::uint64_t clock_max = 0; ///< No pull of a later clock was answered.
};

/// One entry of the log, which every replica applies: a push, or all slots of a bsp clock.
struct log_entry {
  /// One push; or the slots of a clock in order, if they were not added up.
  std::vector<std::shared_ptr<const push_request>> pushes;
  std::vector<table_id> tables; ///< The tables that it steps and marks as applied.
};
struct entry_message {
  append_message place;
  log_entry entry;
};

/// From one replica to another. One-way: it may be lost, repeated and overtaken.
struct replica_message {
  shard_id shard;
  member_id from;
  std::variant<entry_message, committed_message, joined_message, copy_request, copy_part> what;
};

} // namespace troupe
