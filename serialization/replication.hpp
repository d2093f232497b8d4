// What the coordinator says of chains and what their replicas say to each other, as plain values.
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

/// Who replicates some partitions, in one epoch.
struct chain_config {
  config_id config;                ///< 0: none.
  generation_id generation;        ///< Of the history that its log continues.
  std::vector<member_id> members;  ///< Head first, tail last.
  std::optional<member_id> joiner; ///< Not a member yet: the tail brings it up to date.

  bool operator==(const chain_config&) const = default;
};

/// What the coordinator knows for good of one chain, and tells everyone.
struct chain_metadata {
  chain_config active; ///< Epoch 0: not founded yet.
  /// Checkpoint that the generation of the newest configuration begins with; 0: initial values.
  std::uint64_t base_checkpoint = 0;
  std::optional<chain_config> proposed; ///< Members of both have to seal before it is active.

  bool operator==(const chain_metadata&) const = default;
};

/// What a replica tells the coordinator.
struct chain_status {
  generation_id generation;   ///< Of what it holds.
  config_id config;           ///< Of the active configuration that it acts in.
  config_id sealed;           ///< It appends nothing of an epoch before this one.
  bool complete = false;      ///< It holds what a member has to hold.
  bool joiner_synced = false; ///< Tail: nothing becomes final that the joiner of `epoch` lacks.
  /// It has waited long for whom it sends entries to, or as a joiner for the tail, and got nowhere.
  bool stalled = false;

  bool operator==(const chain_status&) const = default;
};

// -- messages between replicas --

/// Comes with the entry itself.
struct append_message {
  config_id config;
  std::uint64_t index = 0;
  std::uint64_t committed = 0; ///< What the sender knows to be final.
};
/// Final up to `index`: every member has it.
struct committed_message {
  config_id config;
  std::uint64_t index = 0;
};
/// A joiner to the tail: it has everything up to `last`.
struct joined_message {
  config_id config;
  std::uint64_t last = 0;
};
/// A block, or a slab of a sparse table, as somebody has it.
struct held_version {
  partition_id partition;
  table_id table;
  std::uint64_t number = 0; ///< block_image::block or slab_image::slab.
  std::uint64_t version = 0;

  auto operator<=>(const held_version&) const = default;
};
/// A joiner to the tail: it lacks part `part` of a copy of the state. The tail pins that with the
/// first request of an epoch, without what the joiner has.
struct copy_request {
  config_id config;
  std::uint32_t part = 0;
  std::vector<held_version> held = {}; ///< Of a past state of this generation; with part 0.
};
/// A stretch of one partition. All parts together are the state at `index`.
struct copy_part {
  config_id config;
  std::uint64_t index = 0;
  std::uint32_t part = 0;
  std::uint32_t parts = 0;
  partition_image image; ///< Some of its blocks and slabs; version and marks are those of all.
  std::uint64_t clock_max = 0; ///< No pull of a later clock was answered.
};

/// What every replica does at one place of the log: a push, or all slots of a bsp clock.
struct log_entry {
  /// One; or the slots in order, where they were not added up.
  std::vector<std::shared_ptr<const push_request>> pushes;
  std::vector<table_id> tables; ///< Those that it steps and marks.
};
struct entry_message {
  append_message place;
  log_entry entry;
};

/// From one replica to another. One-way: it may be lost, repeated and overtaken.
struct replica_message {
  chain_id chain;
  member_id from;
  std::variant<entry_message, committed_message, joined_message, copy_request, copy_part> what;
};

} // namespace troupe
