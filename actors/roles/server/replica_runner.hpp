// Carries out the decisions of a replica_host: on the values, on files and on other servers.
#pragma once

#include "actors/effect_runner.hpp"
#include "actors/protocol/server/replica_host.hpp"
#include "actors/reply_batch.hpp"
#include "actors/roles/server/server_actor.hpp"
#include "actors/roles/server/trace_recorder.hpp"
#include "actors/tables/state_copy.hpp"
#include "actors/tables/table_store.hpp"
#include "base/growing_map.hpp"

#include "caf/typed_event_based_actor.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
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

/// Runs one replica host; part of the server actor's state. Callbacks check `alive_`, which ends
/// with the runner, before they use it.
class replica_runner {
public:
  replica_runner(server_context& context, shard_id shard);
  replica_runner(const replica_runner&) = delete;
  replica_runner& operator=(const replica_runner&) = delete;

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
  replica_status report() const { return host_.report(); }
  server_counters counters() const; ///< Sums over all generations.
  chain_status status() const { return host_.status(); }

private:
  struct open_request {
    responder by;
    step_header pushed{};           ///< The push's, for the trace.
    std::uint64_t base_version = 0; ///< The push's, for the trace.
  };
  using local_ptr = std::shared_ptr<storage::local_state>;

  time_point now() const { return context_->options.boot_clock(); }
  const server_functions& functions() const { return context_->options.functions; }
  template <class Event>
  void decide(Event event) {
    runner_.decide(std::move(event),
                   [this](auto& effect, host_effects& more) { run(effect, more); });
  }
  /// Returns the function, which then does nothing once this object has ended.
  template <class Outcome, class Function>
  auto while_alive(Function what) {
    return [what = std::move(what), alive = std::weak_ptr{alive_}](Outcome& outcome) {
      if (!alive.expired())
        what(outcome);
    };
  }

  // -- steps and requests --
  void run(step_effect& effect, host_effects& more);
  void run(apply_gathered_effect& effect, host_effects& more);
  void run(acknowledge_effect& effect, host_effects& more);
  void run(reply_effect& effect, host_effects& more);
  void run(refuse_effect& effect, host_effects& more);
  void run(workers_effect& effect, host_effects& more);
  void run(report_effect& effect, host_effects& more);
  void run(note_effect& effect, host_effects& more);
  void log(log_level level, const std::string& what) const;
  result<void> gather(step_effect& effect);
  void applied(std::span<const push_request* const> pushes);
  void apply_admitted();
  void verify();
  void answer(request_token token, reply what);
  result<void> check(const request& what);
  result<void> check(const push_request& push);

  // -- replica_runner_disk.cpp: what it holds, loads and keeps for itself --
  void run(begin_generation_effect& effect, host_effects& more);
  void run(load_effect& effect, host_effects& more);
  void run(recall_effect& effect, host_effects& more);
  void run(replay_effect& effect, host_effects& more);
  void run(keep_past_effect& effect, host_effects& more);
  void run(settle_loaded_effect& effect, host_effects& more);
  void run(save_effect& effect, host_effects& more);
  void run(write_effect& effect, host_effects& more);
  void loaded(std::uint64_t load, std::shared_ptr<value_store> values,
              std::vector<shard_partition> held);
  void load_failed(std::uint64_t load, const failure& why);
  void fill(std::uint64_t load, std::vector<shard_partition> held,
            std::vector<partition_image> images);
  void restored(std::uint64_t load, const std::vector<partition_image>& images);
  void recalled(std::uint64_t load, local_ptr kept);
  void saved(const save_id& id, const result<checkpoint_part>& done);
  std::uint64_t next_base();
  result<void> begin_log(const save_effect& effect);

  // -- replica_runner_copies.cpp: other replicas --
  void run(replica_send_effect& effect, host_effects& more);
  void run(send_copy_effect& effect, host_effects& more);
  void run(end_copy_effect& effect, host_effects& more);
  void run(ask_copy_effect& effect, host_effects& more);
  void take(const member_id& from, const entry_message& what);
  void take(const member_id& from, const copy_part& what);
  template <class Message>
  void take(const member_id& from, const Message& what) {
    decide([&](host_effects& effects) { host_.receive(from, what, now(), effects); });
  }
  void ask_for_copy(const member_id& from);
  void install(const member_id& from);

  server_context* context_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  replica_host host_;
  effect_runner<host_effect> runner_;
  std::shared_ptr<value_store> values_;
  std::shared_ptr<value_store> loaded_;      ///< A loaded state or a whole copy, until adopted.
  std::vector<partition_image> copy_images_; ///< Those of a whole copy.
  std::optional<trace_recorder> recorder_;

  growing_map<open_request> requests_;
  std::vector<block_store::admitted_push> admitted_;
  std::deque<std::shared_ptr<const push_request>> gathered_; ///< The pushes of admitted_.
  std::uint64_t next_token_ = 1;

  std::vector<copy_part> outgoing_;
  std::optional<copy_in_progress> incoming_;
  local_ptr recalled_;
  std::vector<partition_image> own_past_; ///< This generation's, kept before a restart.

  std::optional<storage::write_ahead_log> log_; ///< The newest base's.
  std::uint64_t base_ = 0; ///< Number of the newest base that was begun; 0: none.
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t bytes_received_ = 0;
};

} // namespace troupe
