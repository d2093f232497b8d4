// Runs one replica of a server: carries out its effects on the values, on files and on other
// servers.
#pragma once

#include "actors/protocol/server/replica.hpp"
#include "actors/reply_batch.hpp"
#include "actors/roles/server/trace_recorder.hpp"
#include "actors/roles/server/server_actor.hpp"
#include "actors/tables/state_copy.hpp"
#include "actors/tables/table_store.hpp"

#include "caf/typed_event_based_actor.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe {

/// State that the replicas of one server share; part of the server actor's state.
struct server_context {
  using handle = server_handle::extend<caf::reacts_to<tick_atom>, caf::reacts_to<step_atom>>;
  using pointer = handle::pointer;

  pointer self = nullptr;
  server_options options;
  checkpointer storage;
  std::shared_ptr<buffer_pool> pool = std::make_shared<buffer_pool>();
  reply_batcher answers;
  std::function<void(const member_id& to, replica_message what)> send;
  std::function<void()> report; ///< Sends a status; called when it has changed.
};

/// Hosts one replica; part of the server actor's state. Callbacks check `alive_`, which ends with
/// the host, before they use it.
class replica_host {
public:
  replica_host(server_context& context, chain_id chain) : context_(&context), chain_(chain) {}
  replica_host(const replica_host&) = delete;
  replica_host& operator=(const replica_host&) = delete;

  void reconcile(const chain_metadata& record,
                 const std::shared_ptr<const desired_server>& desired_state);
  /// Handles a request for this chain.
  void ask(responder by, request what);
  void receive(const replica_message& what);
  void tick();
  /// Applies the gathered pushes; called when the mailbox has no more of them or when
  /// server_options::apply_batch were gathered.
  void end_gathering();
  void fail_open(const failure& why);
  /// Writes the trace so far, so that it outlives the process.
  void flush_record();
  replica_status report() const;
  server_counters counters() const; ///< Sums over all generations.
  chain_status status() const;

private:
  struct open_request {
    responder by;
    request what; ///< Its push is moved out when it is handled.
    reply answer;
    step_header pushed{};           ///< The push's, for the trace.
    std::uint64_t base_version = 0; ///< The push's, for the trace.
  };
  struct outgoing_copy {
    member_id to;
    config_id config;
    std::vector<copy_part> parts;
  };
  using partitions = std::vector<partition_id>;

  time_point now() const { return context_->options.boot_clock(); }
  template <class Event>
  void decide(Event event) {
    replica_effects effects;
    event(effects);
    carry_out(effects);
  }
  void carry_out(replica_effects& effects);
  void run(step_effect& effect, replica_effects& more);
  void run(acknowledge_effect& effect, replica_effects& more);
  void run(refuse_effect& effect, replica_effects& more);
  void run(answer_effect& effect, replica_effects& more);
  void run(cut_effect& effect, replica_effects& more);
  void run(replica_send_effect& effect, replica_effects& more);
  void run(request_copy_effect& effect, replica_effects& more);
  void run(write_effect& effect, replica_effects& more);
  void run(take_back_effect& effect, replica_effects& more);
  void admit(step_effect& effect, replica_effects& more);
  void apply_admitted();
  void record(std::span<const push_request* const> pushes);
  void pull(request_token token, replica_effects& effects);
  void deliver(request_token token);
  result<void> check(const request& what);
  result<void> check(const push_request& push);

  // -- state of the replica --
  void begin_generation(const chain_metadata& record, const chain_config& newest,
                        const desired_server& what);
  void begin_record(const partitions& here, std::uint64_t base_checkpoint);
  void load(const job_spec& job, const partitions& here, const chain_metadata& record);
  void load_from(const job_spec& job, const partitions& here, std::uint64_t base_checkpoint);
  void fill(const job_spec& job, const partitions& here);
  void restore(const job_spec& job, const partitions& here, std::uint64_t base_checkpoint);
  void restored(const job_spec& job, const std::vector<partition_image>& images,
                std::uint64_t base_checkpoint);
  void found(std::shared_ptr<table_store> values, std::vector<shard_partition> held);
  void begin(std::shared_ptr<table_store> values, const std::vector<shard_partition>& held);
  void go_on();
  void give_up(std::string why, std::uint64_t bad_checkpoint = 0);
  void free_if_unnamed();
  void reconcile_checkpoint();
  server_counters counters_of_state() const;

  // -- states kept on disk --
  using local_ptr = std::shared_ptr<storage::local_state>;
  bool is_durable() const { return desired_state_->job.durability == durability_mode::log; }
  bool keeps_states() const;
  bool writes_log() const { return is_durable() && keeps_states(); }
  storage::cut cut_of(std::uint64_t checkpoint, std::vector<partition_image> images);
  void begin_log();
  void keep(std::vector<partition_image> images, std::function<void(const result<void>&)> then);
  void keep_present();
  void break_off(const failure& why);
  void recover(const job_spec& job, const partitions& here, const chain_metadata& record);
  void replay(const job_spec& job, local_ptr kept, std::function<void(const std::string&)> instead);
  void read_kept(const job_spec& job, const partitions& here,
                 std::function<void(local_ptr, const std::string&)> then);
  void read_own_past(const job_spec& job, const partitions& here);
  void log(const std::string& what) const;

  // -- other replicas --
  void take(const member_id& from, const entry_message& what, replica_effects& effects);
  void take(const member_id& from, const committed_message& what, replica_effects& effects);
  void take(const member_id& from, const joined_message& what, replica_effects& effects);
  void take(const member_id& from, const copy_request& what, replica_effects& effects);
  void take(const member_id& from, const copy_part& what, replica_effects& effects);
  void ask_for_copy(const member_id& from);
  void install(const member_id& from, replica_effects& effects);
  void put_in_place(const copy_part& first, std::shared_ptr<table_store> copied,
                    const std::vector<shard_partition>& held, replica_effects& effects);

  server_context* context_;
  chain_id chain_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();

  chain_metadata record_;
  /// The newest desired state, which all replicas of the server share.
  std::shared_ptr<const desired_server> desired_state_ = std::make_shared<const desired_server>();
  generation_id generation_;  ///< The generation that it holds or loads.
  generation_id history_;     ///< The job's, in which `generation_` began.
  std::uint64_t loading_ = 0; ///< Grows with each generation; identifies a load.
  std::optional<replica> replica_;
  std::shared_ptr<table_store> values_;
  std::optional<trace_recorder> recorder_;
  bool is_bsp_ = false;                     ///< Whether any table is.
  std::optional<time_point> unnamed_since_; ///< When configurations ceased to name it.

  std::unordered_map<std::uint64_t, open_request> requests_;
  std::deque<request_token> pulls_due_; ///< Pulls whose pushes are done.
  std::vector<block_store::admitted_push> admitted_;
  std::deque<std::shared_ptr<const push_request>> gathered_; ///< The pushes of admitted_.
  std::uint64_t next_token_ = 1;
  std::optional<outgoing_copy> outgoing_;
  /// A copy request for a configuration that only its sender has heard of so far.
  std::optional<std::pair<member_id, copy_request>> early_request_;
  std::optional<copy_in_progress> incoming_;
  time_point copy_asked_at_{0};
  bool copy_waits_ = false;               ///< Until kept state is read or the last copy is kept.
  std::vector<partition_image> own_past_; ///< This generation's, kept before a restart.

  std::optional<storage::write_ahead_log> log_; ///< The newest base's.
  std::uint64_t base_ = 0;    ///< Number of the newest base that was begun; 0: none.
  std::uint64_t kept_at_ = 0; ///< The last checkpoint for which it kept a state.
  /// True: its generation began with kept state that had everything the chain had acknowledged.
  bool recovered_ = false;
  bool broken_ = false; ///< Its log cannot be written, so it has stopped.

  std::uint64_t checkpoint_cut_ = 0;
  std::uint64_t checkpoint_failed_ = 0;
  std::string checkpoint_failure_;
  checkpoint_part part_;
  std::string failed_;
  std::uint64_t unreadable_ = 0;
  server_counters former_; ///< Sums over states before the present one.
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t bytes_received_ = 0;
};

} // namespace troupe
