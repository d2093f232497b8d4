// Runs the replica of a server for one of its chains: decides which generation it is in, and passes
// events and effects between the replica and the parts that load, copy and save its state. A plain
// state machine. The caller holds the values.
#pragma once

#include "actors/protocol/server/host_effects.hpp"
#include "actors/protocol/server/replica.hpp"
#include "actors/protocol/server/replica_requests.hpp"
#include "actors/protocol/server/state_copies.hpp"
#include "actors/protocol/server/state_loader.hpp"
#include "actors/protocol/server/state_saver.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace troupe {

struct replica_host_options {
  member_id self;
  std::uint64_t job = 0; ///< fingerprint of the job that the server was started for.
  /// Returns the options of a replica of this job. The host itself sets `writes_log`, and the lease
  /// of a chain without other replicas.
  std::function<replica_options(const job_spec&)> replica_options_of;
  /// Pushes of asp and ssp tables that are gathered before they are applied in one pass. 1: each is
  /// applied at once.
  std::size_t apply_batch = 1;
  bool has_checkpoints = false; ///< Checkpoints can be read and written.
  bool has_disk = false;        ///< Local states can be saved; needs `has_checkpoints`.
  /// A server that no configuration has named for this time frees its state. A silent server
  /// that is heard again gets its part back within seconds, and a copy of the values it lacks.
  std::chrono::nanoseconds unnamed_time{std::chrono::seconds{30}};
  /// A copy whose next part has not come for this time is asked for again.
  std::chrono::nanoseconds copy_patience{0};
};

/// Runs one replica after the other: one for each generation of the chain in which the server has a
/// part. An initial member of a generation loads its state first; a joiner begins without one.
///
/// Events: desired states and time, requests, messages of other replicas, and the outcomes of its
/// effects (host_effects.hpp). The parts state their own events and effects.
///
/// Invariants, beside those of its parts:
/// (1) outcomes of an earlier generation change nothing, except that a checkpoint has failed. Held
///     by: assert in begin_with_loaded().
/// (2) with a log, a generation, or a place in a chain, begins only when its state is saved. Held
///     by: assert in state_copies::take(); check_kept() in cli/sim/job_checks.cpp.
/// (3) after a failed write to the log the host does nothing until another generation begins. Held
///     by: assert in save(), begin_with_loaded().
/// (4) gathered steps are applied before values are read, saved, copied or replaced. Held by:
///     assert in run(), save(), send_copy().
/// (5) an event comes only when the outcome of a step or a write is known. Held by: assert in
///     reconcile(), tick(), end_gathering(), applied(), written().
class replica_host {
public:
  replica_host(shard_id shard, replica_host_options options);

  // -- desired state --
  void reconcile(const chain_metadata& record, std::shared_ptr<const desired_server> desired,
                 time_point now, host_effects& effects);
  void tick(time_point now, host_effects& effects);

  // -- requests --
  /// Errors: not_ready, where the server has no values of the chain.
  result<void> ready() const;
  /// Takes a request, whose form the caller has checked. Tokens must grow.
  void ask(request_token token, request what, time_point now, host_effects& effects);
  /// Counts a push that the caller refused itself.
  void count_refused();
  /// Takes the checksum of the present values, to be reported.
  void verified(std::uint32_t crc32c);
  void end_gathering(time_point now, host_effects& effects);

  // -- outcomes of effects --
  /// Returns whether the outcome of this load is still of use.
  bool awaits_load(std::uint64_t load) const { return loader_.awaits(load); }
  void applied(time_point now, host_effects& effects);
  void discarded(failure why, time_point now, host_effects& effects);
  /// After write_effect and save_effect: whether the log was written, if any.
  void written(const result<void>& done, time_point now, host_effects& effects);
  void saved(const save_id& id, const result<checkpoint_part>& done, time_point now,
             host_effects& effects);
  void loaded(std::uint64_t load, std::vector<shard_partition> held, time_point now,
              host_effects& effects);
  void load_failed(std::uint64_t load, const failure& why, host_effects& effects);
  /// Nullopt: there is no local state.
  void recalled(std::uint64_t load, const result<std::optional<recalled_state>>& found,
                host_effects& effects);

  // -- other replicas --
  void receive(const member_id& from, const entry_message& what, time_point now,
               host_effects& effects);
  void receive(const member_id& from, const committed_message& what, time_point now,
               host_effects& effects);
  void receive(const member_id& from, const joined_message& what, time_point now,
               host_effects& effects);
  void receive(const member_id& from, const copy_request& what, time_point now,
               host_effects& effects);
  /// Returns whether a copy for this configuration was asked for and is not whole yet.
  bool awaits_copy(config_id config) const { return copies_.awaits(config); }
  void copy_advanced(time_point now);
  /// The copy is whole. Requires: awaits_copy(what.config).
  void copied(copied_state what, time_point now, host_effects& effects);
  /// The copy cannot be used; another one will be asked for.
  void copy_failed() { copies_.failed(); }

  shard_id shard() const { return shard_; }
  /// Returns the generation of the state that it holds or loads.
  generation_id generation() const { return generation_; }
  /// Returns the generation of the job in which that one began.
  generation_id job_generation() const { return job_generation_; }
  const chain_metadata& record() const { return record_; }
  const desired_server& desired() const { return *desired_; }
  /// Returns whether its generation began with a local state that had all acknowledged pushes.
  bool recovered() const { return loader_.recovered(); }
  bool is_bsp() const { return is_bsp_; }
  bool is_broken() const { return broken_.has_value(); }
  bool leads() const { return replica_ && replica_->leads(); }
  /// Returns the shard; null while there are no values.
  const troupe::shard* state() const { return replica_ ? replica_->state() : nullptr; }
  chain_status status() const;
  replica_status report() const;
  /// Returns the counters of all generations, without bytes.
  server_counters counters() const;

private:
  /// The outcome without which nothing goes on.
  enum class awaited : std::uint8_t { nothing, step, gathered_step, write };

  bool acts() const { return replica_ && !broken_; }
  bool writes_log() const { return saver_.writes_log(desired_->job); }

  // -- generations --
  void begin_generation(const chain_config& newest, time_point now, host_effects& effects);
  load_terms terms_of_load() const;
  void begin(const std::vector<shard_partition>& held, time_point now);
  void begin_with_loaded(time_point now, host_effects& effects);
  void free_if_unnamed(time_point now, host_effects& effects);
  void break_off(const failure& why, host_effects& effects);

  // -- the effects of the replica --
  void advance(time_point now, host_effects& effects);
  void run(step_effect& effect, time_point now, host_effects& effects);
  void run(acknowledge_effect& effect, time_point now, host_effects& effects);
  void run(refuse_effect& effect, time_point now, host_effects& effects);
  void run(answer_effect& effect, time_point now, host_effects& effects);
  void run(cut_effect& effect, time_point now, host_effects& effects);
  void run(request_copy_effect& effect, time_point now, host_effects& effects);
  void run(write_effect& effect, time_point now, host_effects& effects);
  void run(replica_send_effect& effect, time_point now, host_effects& effects);
  void pull(request_token token, time_point now);
  void apply_gathered(host_effects& effects);

  // -- states --
  void follow_desired(time_point now, host_effects& effects);
  void save_for_later(host_effects& effects);
  void save(const save_id& id, std::vector<shard_partition> partitions, host_effects& effects);
  void send_copy(const member_id& to, const copy_request& what, host_effects& effects);
  bool holds_copy_up() const { return loader_.recalls_past() || copies_.saves(); }
  void install(time_point now, host_effects& effects);
  template <class Message>
  void pass_on(const member_id& from, const Message& what, time_point now, host_effects& effects);
  server_counters counters_of_state() const;

  shard_id shard_;
  replica_host_options options_;

  chain_metadata record_;
  /// The newest one, which all chains of a server share.
  std::shared_ptr<const desired_server> desired_ = std::make_shared<const desired_server>();
  std::optional<time_point> unnamed_since_; ///< When configurations ceased to name it.
  bool was_told_ = false; ///< A new desired state waits until all effects are carried out.

  generation_id generation_;
  generation_id job_generation_;
  bool is_bsp_ = false;           ///< Whether any table is.
  std::optional<failure> broken_; ///< Why its log cannot be written.
  state_loader loader_;
  state_copies copies_;
  state_saver saver_;
  replica_requests requests_;

  std::optional<replica> replica_;
  replica_effects decided_; ///< Those from next_ on are to be carried out.
  std::size_t next_ = 0;
  awaited awaits_ = awaited::nothing;
  std::size_t gathered_ = 0;

  std::vector<value_checksum> checksums_; ///< The newest ones of the generation.
  server_counters former_;                ///< Sums over states before the present one.
};

} // namespace troupe
