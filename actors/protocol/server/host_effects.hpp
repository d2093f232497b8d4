// Declares the effects of a replica_host and its parts. The caller carries them out in their order.
#pragma once

#include "actors/protocol/server/replica.hpp"
#include "base/log.hpp"
#include "serialization/messages.hpp"
#include "serialization/stored_state.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

// -- requests and steps --

/// Take all steps that were gathered, in their order.
struct apply_gathered_effect {};

/// The present values, for a reply; for `previous` see answer_effect.
struct reading {
  pull_request what;
  std::uint64_t version = 0;
  std::vector<table_id> previous;
};
/// Answer the request: its push is applied, and it gets the values that it wanted. Nullopt `read`:
/// the reply has no values; if it wanted any, the asker is to ask for them again.
struct reply_effect {
  request_token request;
  std::optional<push_reply> pushed;
  std::optional<reading> read = {};
};

// -- loads --

/// Drop the values, the loaded state, copies and the past state. Later effects belong to this
/// generation.
struct begin_generation_effect {
  generation_id generation;
  std::uint64_t base_checkpoint = 0;
  std::vector<partition_id> partitions;
};
/// Make the loaded state: read this checkpoint; 0: make initial values. Then call loaded() or
/// load_failed().
struct load_effect {
  std::uint64_t load = 0; ///< Handed back with the outcome.
  std::uint64_t checkpoint = 0;
  std::vector<partition_id> partitions;
};
/// Read the local state of these partitions. Then call recalled().
struct recall_effect {
  std::uint64_t load = 0;
  std::vector<partition_id> partitions;
};
/// The outcome of recall_effect: the newest base and the number of entries in its log.
struct recalled_state {
  storage::base_id base;
  std::size_t entries = 0;
};
/// Take the steps of the log on the local state that was recalled, as the loaded state. Then call
/// loaded() or load_failed().
struct replay_effect {
  std::uint64_t load = 0;
};
/// Keep the local state that was recalled: a copy need not bring its values.
struct keep_past_effect {};
/// Make the loaded state, or the whole copy, the values if it is adopted; else drop it.
struct settle_loaded_effect {
  bool is_adopted = false;
};

// -- saves --

enum class save_purpose : std::uint8_t {
  starting,   ///< The loaded state, before the generation begins with it.
  joining,    ///< A whole copy, before it becomes the values.
  checkpoint, ///< The chain's part of a checkpoint.
  later_start ///< A local state for a later start.
};
struct save_id {
  std::uint64_t load = 0; ///< The generation that it belongs to.
  save_purpose purpose = save_purpose::checkpoint;
  std::uint64_t checkpoint = 0; ///< 0: for the server alone.
};
/// Pin a state and write it, for a checkpoint or for the server, or for both. Before any other
/// event call written(). If that had no error, call saved() when all is written.
struct save_effect {
  save_id id;
  std::vector<shard_partition> partitions;
  /// The state is also a base that the server begins with after a restart. The caller numbers it.
  std::optional<storage::base_id> base = {};
  bool keeps_previous = false;     ///< The base before it stays, as its log has the last step.
  bool begins_log = false;         ///< A new log begins together with the base.
  std::uint64_t first = 0;         ///< Index of the first entry of `log`.
  std::vector<log_entry> log = {}; ///< The entries that the state lacks so far.

  /// Returns whether the state is the loaded one or a copy, instead of the values.
  bool is_loaded() const {
    return id.purpose == save_purpose::starting || id.purpose == save_purpose::joining;
  }
};

// -- copies --

/// The state at `index`, for a joiner.
struct copied_state {
  config_id config;
  std::uint64_t index = 0;
  std::uint64_t clock_max = 0;
  std::vector<shard_partition> partitions;
};
/// Send the part of the copy that the joiner asks for. `fresh`: pin the present values for it
/// first, in place of any copy before.
struct send_copy_effect {
  member_id to;
  copy_request what;
  std::optional<copied_state> fresh;
};
/// Drop the copy that is being sent.
struct end_copy_effect {};
/// Ask for a copy, or again for the parts of it that have not come. Then call copy_advanced() for
/// each part and, when it is whole, copied() or copy_failed().
struct ask_copy_effect {
  member_id from;
  config_id config;
};

// -- reports --

/// The list of workers has changed.
struct workers_effect {};
/// Something to be reported has changed.
struct report_effect {};
/// Write a line to the log.
struct note_effect {
  log_level level = log_level::info;
  std::string text;
};

/// An acknowledge_effect only says that the push is done: a reply_effect answers its request. After
/// a write_effect the caller must call written() before any other event.
using host_effect =
  std::variant<step_effect, apply_gathered_effect, acknowledge_effect, reply_effect, refuse_effect,
               write_effect, replica_send_effect, begin_generation_effect, load_effect,
               recall_effect, replay_effect, keep_past_effect, settle_loaded_effect, save_effect,
               send_copy_effect, end_copy_effect, ask_copy_effect, workers_effect, report_effect,
               note_effect>;
using host_effects = std::vector<host_effect>;

} // namespace troupe
