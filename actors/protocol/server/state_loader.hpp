// Decides with which state a replica begins a generation: its own local state, a checkpoint or
// initial values. A plain state machine, part of a replica_host.
#pragma once

#include "actors/protocol/server/host_effects.hpp"
#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The generation that begins, as far as its load depends on it.
struct load_terms {
  generation_id generation;
  generation_id history; ///< The job's generation: a local state of another one is of no use.
  std::uint64_t base_checkpoint = 0; ///< The generation begins with it, unless it recovers.
  chain_config lost;                 ///< The configuration before the generation.
  std::vector<partition_id> partitions;
  bool is_durable = false;   ///< The job keeps logs.
  bool keeps_states = false; ///< This server keeps local states.
};

/// Events: begin() and then load() or recall_past(), and the outcomes of the effects. Effects:
/// load_effect, recall_effect, replay_effect, keep_past_effect, report_effect, note_effect.
///
///     load() --> recalling --all of it was kept--> replaying --> loaded --take()--> nothing
///                    |                                 |          ^
///                    +------------ else --> reading <--+----------+
///     recall_past() --> recalling_past --> nothing
///
/// Invariants:
/// (1) outcomes of an earlier load change nothing; an outcome of the present one comes once. Held
///     by: assert in recalled(), loaded(), failed().
/// (2) a local state is replayed only if it has all pushes that were acknowledged before. Held by:
///     assert in recalled(); check_kept() in cli/sim/job_checks.cpp.
/// (3) a load that failed for good is reported, and leaves no state to begin with. Held by: assert
///     in give_up().
class state_loader {
public:
  state_loader(server_id self, bool has_checkpoints);

  /// Begins the next generation. Drops the load before, and its outcome.
  void begin(load_terms terms);
  /// Loads the state of an initial member.
  void load(host_effects& effects);
  /// Reads the local state of a joiner: it may hold a part of the copy.
  void recall_past(host_effects& effects);
  /// Reports that the generation cannot be begun.
  void give_up(failure why, host_effects& effects) { give_up(std::move(why), 0, effects); }

  // -- outcomes --
  /// Returns whether the outcome of this load is still of use.
  bool awaits(std::uint64_t load) const;
  /// Nullopt: there is no local state.
  void recalled(std::uint64_t load, const result<std::optional<recalled_state>>& found,
                host_effects& effects);
  /// Returns whether a state is loaded now.
  bool loaded(std::uint64_t load, std::vector<shard_partition> held, host_effects& effects);
  void failed(std::uint64_t load, const failure& why, host_effects& effects);

  // -- state --
  std::uint64_t number() const { return number_; } ///< Grows with each generation.
  /// Returns the partitions of the loaded state.
  const std::vector<shard_partition>& held() const { return held_; }
  /// Hands out the loaded state, with which the replica begins or which is dropped.
  std::vector<shard_partition> take();
  /// Returns whether a joiner's local state is still being read.
  bool recalls_past() const { return stage_ == stage::recalling_past; }
  /// Returns whether the generation began with a local state that had all acknowledged pushes.
  bool recovered() const { return recovered_; }
  const std::optional<failure>& why_failed() const { return failed_; }
  /// Returns the checkpoint that could not be read; 0: none.
  std::uint64_t unreadable() const { return unreadable_; }

private:
  enum class stage : std::uint8_t {
    nothing,
    recalling_past,
    recalling,
    replaying,
    reading,
    loaded
  };

  void load_checkpoint(host_effects& effects);
  void load_instead(const std::string& why, host_effects& effects);
  void give_up(failure why, std::uint64_t bad_checkpoint, host_effects& effects);

  server_id self_;
  bool has_checkpoints_;
  load_terms terms_;
  std::uint64_t number_ = 0;
  stage stage_ = stage::nothing;
  std::size_t entries_ = 0;           ///< Entries in the log that is replayed.
  std::vector<shard_partition> held_; ///< Until the generation begins.
  bool recovered_ = false;
  std::optional<failure> failed_;
  std::uint64_t unreadable_ = 0;
};

} // namespace troupe
