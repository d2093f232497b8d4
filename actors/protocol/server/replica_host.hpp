// Decides the work of a server for one of its chains: the generation that it runs, the state that
// begins it, the states that are saved and freed, and the answers to requests. A plain state
// machine. The caller holds the values.
#pragma once

#include "actors/protocol/server/replica.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/growing_map.hpp"
#include "base/log.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
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

// -- effects: the caller carries them out in this order --

/// Drop the values, the loaded state, copies and the past state. Later effects belong to this
/// generation.
struct begin_generation_effect {
  generation_id generation;
  std::uint64_t base_checkpoint = 0;
  std::vector<partition_id> partitions;
};

/// Make initial values of these partitions, as the loaded state. Then call loaded() or
/// load_failed().
struct fill_effect {
  std::uint64_t load = 0; ///< Handed back with the outcome.
  std::vector<partition_id> partitions;
};
/// Read this checkpoint, as the loaded state. Then call loaded() or load_failed().
struct restore_effect {
  std::uint64_t load = 0;
  std::uint64_t checkpoint = 0;
  std::vector<partition_id> partitions;
};
/// Read the local state of these partitions. Then call recalled().
struct recall_effect {
  std::uint64_t load = 0;
  std::vector<partition_id> partitions;
};
/// Take the steps of the log on the local state that was recalled, as the loaded state. Then call
/// loaded() or load_failed().
struct replay_effect {
  std::uint64_t load = 0;
};
/// Keep the local state that was recalled: a copy need not bring its values.
struct keep_past_effect {};
/// Make the loaded state, or the whole copy, the values.
struct adopt_effect {};
/// Drop the whole copy, or the loaded state.
struct drop_copy_effect {};

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

/// Check that the step can be taken, and keep it for the next apply_gathered_effect. Before any
/// other event call applied() or discarded(). After the first one, call end_gathering() as soon as
/// no other request waits.
struct gather_effect {
  apply_effect what;
  std::shared_ptr<const push_request> push;
};
/// Take all steps that were kept, in their order.
struct apply_gathered_effect {};

/// Answer the request: its push is applied. Values are to be asked for again, if it wanted any.
struct receipt_effect {
  request_token request;
  push_reply pushed;
};
/// Answer the request with the present values; for `previous` see answer_effect.
struct read_effect {
  request_token request;
  std::optional<push_reply> pushed;
  pull_request what;
  std::uint64_t version = 0;
  std::vector<table_id> previous;
};
/// Refuse all open requests.
struct refuse_all_effect {
  failure why;
};

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

/// The list of workers has changed.
struct workers_effect {};
/// Something to be reported has changed.
struct report_effect {};
/// Write a line to the log.
struct note_effect {
  log_level level = log_level::info;
  std::string text;
};

/// An acknowledge_effect only says that the push is done: a receipt_effect or a read_effect answers
/// its request. After a write_effect or a take_back_effect the caller must call written() before
/// any other event.
using host_effect =
  std::variant<step_effect, gather_effect, apply_gathered_effect, acknowledge_effect,
               receipt_effect, read_effect, refuse_effect, refuse_all_effect, write_effect,
               take_back_effect, replica_send_effect, begin_generation_effect, fill_effect,
               restore_effect, recall_effect, replay_effect, keep_past_effect, adopt_effect,
               drop_copy_effect, save_effect, send_copy_effect, end_copy_effect, ask_copy_effect,
               workers_effect, report_effect, note_effect>;
using host_effects = std::vector<host_effect>;

/// The outcome of recall_effect: the newest base and the number of entries in its log.
struct recalled_state {
  storage::base_id base;
  std::size_t entries = 0;
};

/// Runs one replica after the other: one for each generation of the chain in which the server has a
/// part. An initial member of a generation loads its state first; a joiner begins without one.
///
/// Invariants:
/// (1) outcomes of an earlier generation change nothing, except that a checkpoint has failed.
/// (2) with a log, a generation, or a place in a chain, begins only when its state is saved.
/// (3) after a failed write to the log the host does nothing until another generation begins.
/// (4) gathered steps are applied before values are read, saved, copied or replaced.
/// (5) each request ends in one receipt, read or refusal.
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
  bool awaits_load(std::uint64_t load) const;
  void applied(time_point now, host_effects& effects);
  void discarded(failure why, time_point now, host_effects& effects);
  /// After write_effect, take_back_effect and save_effect: whether the log was written, if any.
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
  bool awaits_copy(config_id config) const { return copying_ == config; }
  void copy_advanced(time_point now);
  /// The copy is whole. Requires: awaits_copy(what.config).
  void copied(copied_state what, time_point now, host_effects& effects);
  /// The copy cannot be used; another one will be asked for.
  void copy_failed() { copying_.reset(); }

  shard_id shard() const { return shard_; }
  /// Returns the generation of the state that it holds or loads.
  generation_id generation() const { return generation_; }
  /// Returns the generation of the job in which that one began.
  generation_id job_generation() const { return job_generation_; }
  const chain_metadata& record() const { return record_; }
  const desired_server& desired() const { return *desired_; }
  /// Returns whether its generation began with a local state that had all acknowledged pushes.
  bool recovered() const { return recovered_; }
  bool is_bsp() const { return is_bsp_; }
  bool is_broken() const { return broken_; }
  bool leads() const { return replica_ && replica_->leads(); }
  /// Returns the shard; null while there are no values.
  const troupe::shard* state() const { return replica_ ? replica_->state() : nullptr; }
  chain_status status() const;
  replica_status report() const;
  /// Returns the counters of all generations, without bytes.
  server_counters counters() const;

private:
  struct open_request {
    std::optional<pull_request> pull;
    std::optional<push_reply> pushed;
  };
  enum class loading : std::uint8_t { nothing, filling, restoring, recalling, replaying };
  enum class awaited : std::uint8_t { nothing, step, write };

  bool is_durable() const { return desired_->job.durability == durability_mode::log; }
  bool keeps_states() const;
  bool writes_log() const { return is_durable() && keeps_states(); }

  // -- generations --
  void begin_generation(const chain_config& newest, time_point now, host_effects& effects);
  void load(host_effects& effects);
  void load_checkpoint(host_effects& effects);
  void load_instead(const std::string& why, host_effects& effects);
  void begin(std::vector<shard_partition> held, time_point now);
  void begin_with_loaded(time_point now, host_effects& effects);
  void give_up(failure why, std::uint64_t bad_checkpoint, host_effects& effects);
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
  void run(take_back_effect& effect, time_point now, host_effects& effects);
  void run(replica_send_effect& effect, time_point now, host_effects& effects);
  void pull(request_token token, time_point now);
  void apply_gathered(host_effects& effects);

  // -- states --
  void follow_desired(time_point now, host_effects& effects);
  void save_for_later(host_effects& effects);
  void save(save_id id, std::vector<shard_partition> partitions, host_effects& effects);
  void send_copy(const member_id& to, const copy_request& what, host_effects& effects);
  void end_copy(host_effects& effects);
  void install(time_point now, host_effects& effects);
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
  std::uint64_t load_ = 0; ///< Grows with each generation.
  loading loading_ = loading::nothing;
  std::vector<partition_id> partitions_;
  std::uint64_t base_checkpoint_ = 0; ///< The generation begins with it, unless it recovers.
  chain_config lost_;                 ///< The configuration before the generation.
  std::size_t recalled_entries_ = 0;
  std::vector<shard_partition> loaded_; ///< Until the generation begins.
  std::optional<replica> replica_;
  std::vector<value_checksum> checksums_; ///< The newest ones of the generation.
  bool is_bsp_ = false;                   ///< Whether any table is.
  bool recovered_ = false;
  bool broken_ = false; ///< Its log cannot be written.

  replica_effects decided_; ///< Those from next_ on are to be carried out.
  std::size_t next_ = 0;
  awaited awaits_ = awaited::nothing;
  bool gathers_ = false; ///< The awaited step is to be gathered.
  std::size_t gathered_ = 0;
  growing_map<open_request> requests_;
  std::deque<request_token> pulls_due_; ///< Pulls whose pushes are done.

  std::optional<std::pair<member_id, config_id>> sending_; ///< The copy that is being sent.
  /// Its sender was told of its configuration first.
  std::optional<std::pair<member_id, copy_request>> early_request_;
  std::optional<config_id> copying_; ///< A copy for this configuration is being received.
  time_point copy_asked_at_{0};
  bool copy_waits_ = false;            ///< For the local state, or until the last copy is saved.
  std::optional<copied_state> copied_; ///< Until it is installed.

  std::uint64_t kept_at_ = 0; ///< The checkpoint for which a state was saved last.
  std::uint64_t checkpoint_cut_ = 0;
  std::uint64_t checkpoint_failed_ = 0;
  std::string checkpoint_failure_;
  checkpoint_part part_;
  std::optional<failure> failed_;
  std::uint64_t unreadable_ = 0;
  server_counters former_; ///< Sums over states before the present one.
};

} // namespace troupe
