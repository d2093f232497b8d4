// Runs one replica of a shard: keeps its log, lets the chain protocol commit entries and lets the
// shard decide on them. A plain state machine; values stay with the caller.
#pragma once

#include "actors/protocol/chain.hpp"
#include "actors/protocol/server/shard.hpp"
#include "serialization/replication.hpp"
#include "serialization/stored_state.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// Returns the part of a log entry that the shard needs.
entry_header header_of(const log_entry& what);

/// Returns whether the server, in any incarnation, was a member of the configuration. If so, its
/// disk has all entries that were committed there; a server that was removed earlier has a past
/// state.
bool was_member(const chain_config& config, server_id server);

/// Returns whether the server's local state, with this base, has all pushes that were acknowledged
/// in the generation of `lost`. A base of a later generation belongs to a start that was not
/// finished.
bool kept_all(const chain_config& lost, server_id server, const storage::base_id& base);

struct replica_options {
  shard_options shard;
  chain_options chain;
  /// A head refuses pushes while its log holds more bytes than this, because other replicas are
  /// slower.
  std::uint64_t chain_log_bytes_max = std::uint64_t{256} << 20;
  /// Adds up the slots of a bsp clock for the replicas behind the head, or returns null if they do
  /// not add up. Empty: replicas get every slot.
  std::function<std::shared_ptr<const push_request>(
    const std::vector<table_id>& tables,
    std::span<const std::shared_ptr<const push_request>> pushes)>
    add_up = {};
  bool writes_log = false; ///< Gives write_effects: entries outlive the process.
};

/// Take this step on the values with these pushes, added up in this order. Always the last effect
/// of an event. Before any other event the caller must call applied() or discarded().
struct step_effect {
  apply_effect what;
  std::vector<std::shared_ptr<const push_request>> pushes;
  /// Only check that the step can be taken, and keep it for the next apply_gathered_effect. Set by
  /// replica_host.
  bool is_gathered = false;
};
/// Send this to the replica of the same shard on that server.
struct replica_send_effect {
  member_id to;
  decltype(replica_message::what) what;
};

/// Write this entry to the write-ahead log, in place of entries with its index or later ones; only
/// remove those if it is nullopt, as they will never be committed. Only when that has succeeded,
/// carry out the effects behind it.
struct write_effect {
  std::uint64_t index = 0;
  std::optional<log_entry> entry;
};

using replica_effect =
  std::variant<write_effect, step_effect, acknowledge_effect, refuse_effect, answer_effect,
               cut_effect, replica_send_effect, request_copy_effect>;
using replica_effects = std::vector<replica_effect>;

/// Handles the events of one generation of the shard. For another generation the caller makes
/// another replica.
///
/// Invariants:
/// (1) entries are applied in the order of the log, one at a time, each after it is committed. Held
///     by: assert in carry_out(), applied(), discarded().
/// (2) pushes are taken by the head alone, while it is not sealed. Pulls are answered under a
///     lease, by the head or, with pull_request::anywhere, by another member. Held by: assert in
///     append(); check_answer() in cli/sim/job_checks.cpp.
class replica {
public:
  /// `generation`: the job's generation, which steps name. `of`: the shard's generation.
  /// `partitions`: the state that members begin with; empty: the replica has to join.
  replica(const job_spec& job, member_id self, generation_id generation, generation_id of,
          const std::vector<shard_partition>& partitions, replica_options options = {});

  // -- desired state from the coordinator --
  void reconcile(const chain_metadata& record, time_point now, replica_effects& effects);
  void set_workers(const std::vector<clock_entry>& workers, time_point now,
                   replica_effects& effects);
  void renew(time_point stamp) { chain_.renew(stamp); }
  /// Requires: leads(). A replica that stops leading forgets the request.
  void request_cut(std::uint64_t checkpoint, std::uint64_t clock, time_point now,
                   replica_effects& effects);

  // -- requests; see shard --
  void push(request_token token, std::shared_ptr<const push_request> what, time_point now,
            replica_effects& effects);
  /// Answers a pull. A member that does not lead answers only pulls with `anywhere`, and of these
  /// `latest` ones only as the tail, which has applied every acknowledged push.
  void pull(request_token token, const pull_request& what, time_point now,
            replica_effects& effects);
  void applied(time_point now, replica_effects& effects);
  void discarded(failure why, time_point now, replica_effects& effects);
  void count_refused();
  void tick(time_point now, replica_effects& effects);

  // -- other replicas --
  void receive(const member_id& from, entry_message what, time_point now, replica_effects& effects);
  void receive(const member_id& from, const committed_message& what, time_point now,
               replica_effects& effects);
  void receive(const member_id& from, const joined_message& what, time_point now,
               replica_effects& effects);
  /// Returns the index of the present state, for a copy; see chain::copy_for.
  std::optional<std::uint64_t> copy_for(const member_id& from, config_id config);
  /// See chain::copy_advanced.
  void copy_advanced(time_point now) { chain_.copy_advanced(now); }
  /// Returns whether the caller is to replace its values with the copy, before any other effect.
  /// `clock_max`: state()->pull_clock_max() of the copied replica.
  bool install(config_id config, std::uint64_t index, std::uint64_t clock_max,
               const std::vector<shard_partition>& partitions, time_point now,
               replica_effects& effects);

  /// Returns the entries that are not in the values yet, and before them the index of the first.
  std::pair<std::uint64_t, std::vector<log_entry>> unapplied() const;

  bool leads() const { return chain_.leads(); }
  bool is_head() const { return chain_.is_head(); }
  chain_status status() const;
  /// Returns the shard; null while the replica has no state.
  const shard* state() const { return shard_ ? &*shard_ : nullptr; }

private:
  std::optional<failure> unfit() const;
  std::optional<failure> unfit(const pull_request& what, time_point now) const;
  std::shared_ptr<const push_request> payload_of(request_token token);
  void keep_payload();
  void drop_payload(request_token token);
  void stop_leading(bool led);
  void append(const propose_effect& what, time_point now, replica_effects& effects);
  void run(chain_effects& news, replica_effects& effects);
  void keep(log_entry entry, replica_effects& effects);
  void truncate(std::uint64_t last, replica_effects& effects);
  void drop_released();
  void pass_on(propose_effect& what, time_point now, replica_effects& effects);
  void pass_on(apply_effect& what, time_point now, replica_effects& effects);
  void pass_on(answer_effect& what, time_point now, replica_effects& effects);
  void pass_on(acknowledge_effect& what, time_point now, replica_effects& effects);
  void pass_on(refuse_effect& what, time_point now, replica_effects& effects);
  template <class Other>
  void pass_on(Other& what, time_point, replica_effects& effects) {
    effects.push_back(std::move(what));
  }
  /// Translates the effects of the shard and the chain, until no more follow.
  void carry_out(time_point now, replica_effects& effects);

  job_spec job_;
  generation_id generation_;
  replica_options options_;
  chain chain_;
  std::optional<shard> shard_;
  std::vector<clock_entry> workers_;

  std::deque<log_entry> log_; ///< Entries from index first_ on.
  std::uint64_t first_ = 1;
  std::uint64_t log_bytes_ = 0;
  std::uint64_t applied_ = 0;  ///< Entries up to this one are in the values.
  std::uint64_t final_ = 0;    ///< Entries up to this one are committed.
  std::uint64_t released_ = 0; ///< Entries up to this one are not sent again.
  bool stepping_ = false;      ///< A step_effect is not confirmed yet.
  /// bsp clocks in the newest copy of this state. A copy lacks the values before its last step,
  /// which some workers may still ask for. A joiner that has the next clock too can answer them.
  std::uint64_t copied_clocks_ = 0;
  shard_effects decided_;

  /// The push of this event, and the kept pushes of open bsp clocks.
  std::pair<request_token, std::shared_ptr<const push_request>> arriving_;
  std::map<request_token, std::shared_ptr<const push_request>> held_;
};

} // namespace troupe
