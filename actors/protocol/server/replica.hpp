// One replica of a chain's partitions: the log between what the chain's protocol makes final and
// what the shard decides. A plain state machine; values stay with the caller.
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

/// What the shard is told of an entry.
entry_header header_of(const log_entry& what);

/// Whether the server acted in the configuration, in whatever incarnation. Then its disk has all
/// that was final there; who fell out of the chain before has a past state of it.
bool was_member(const chain_config& config, server_id server);

/// Whether what the server kept, with this base, has all that was acknowledged in the generation
/// `lost`. A base of a later one is of a beginning that was not finished.
bool kept_all(const chain_config& lost, server_id server, const storage::base_id& base);

struct replica_options {
  shard_options shard;
  chain_options chain;
  /// A head refuses pushes while entries that are not final hold so many bytes: others come slower.
  std::uint64_t log_bytes_max = std::uint64_t{256} << 20;
  /// Adds up the slots of a bsp clock for the replicas behind the head, or gives null; none: they
  /// get all of them.
  std::function<std::shared_ptr<const push_request>(
    const std::vector<table_id>& tables,
    std::span<const std::shared_ptr<const push_request>> pushes)>
    add_up = {};
  bool writes_log = false; ///< Gives write_effects: entries outlive the process.
};

/// Take this step on the values with these pushes, added up in this order; the last effect of an
/// event. The caller must then call applied() or discarded(), before any other event.
struct step_effect {
  apply_effect what;
  std::vector<std::shared_ptr<const push_request>> pushes;
};
/// Send this to the replica of the same chain on that server.
struct replica_send_effect {
  member_id to;
  decltype(replica_message::what) what;
};

/// Write this entry to the log, in the place of others with its index or later ones, before the
/// effects behind it are carried out; where that fails, nothing of them may be.
struct write_effect {
  std::uint64_t index = 0;
  log_entry entry;
};
/// The entries beyond `last` will never be final: take them back from the log.
struct take_back_effect {
  std::uint64_t last = 0;
};

using replica_effect =
  std::variant<write_effect, take_back_effect, step_effect, acknowledge_effect, refuse_effect,
               answer_effect, cut_effect, replica_send_effect, request_copy_effect>;
using replica_effects = std::vector<replica_effect>;

/// Events of one generation of the chain; where another one begins, the caller makes another
/// replica.
///
/// Invariants:
/// (1) entries are applied in the order of the log, each when it is final, one at a time.
/// (2) requests are answered by the head alone, while it is not sealed; reads under its lease.
class replica {
public:
  /// `generation`: of the job's history, which steps name. `of`: of the chain. `partitions`: what
  /// members begin the generation with; none: it has to join.
  replica(const job_spec& job, member_id self, generation_id generation, generation_id of,
          const std::vector<shard_partition>& partitions, replica_options options = {});

  // -- the coordinator's word --
  void reconcile(const chain_metadata& record, time_point now, replica_effects& effects);
  void set_workers(const std::vector<clock_entry>& workers, time_point now,
                   replica_effects& effects);
  void renew(time_point stamp) { chain_.renew(stamp); }
  /// Requires: leads(). Whoever leads no more forgets it.
  void request_cut(std::uint64_t checkpoint, std::uint64_t clock, time_point now,
                   replica_effects& effects);

  // -- requests; see shard --
  void push(request_token token, std::shared_ptr<const push_request> what, time_point now,
            replica_effects& effects);
  /// A member that does not lead answers what may be answered `anywhere`; a `latest` one only as
  /// the tail, which has applied whatever was acknowledged to anyone.
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
  /// The index of the present state, for a copy; see chain::copy_for.
  std::optional<std::uint64_t> copy_for(const member_id& from, config_id config);
  /// See chain::copy_advanced.
  void copy_advanced(time_point now) { chain_.copy_advanced(now); }
  /// Whether the caller is to put the copy in the place of its values, before anything else.
  /// `clock_max`: the state()->pull_clock_max() of whom it is a copy.
  bool install(config_id config, std::uint64_t index, std::uint64_t clock_max,
               const std::vector<shard_partition>& partitions, time_point now,
               replica_effects& effects);

  /// Entries that are not in the values yet, and the index of the first of them.
  std::pair<std::uint64_t, std::vector<log_entry>> unapplied() const;

  bool leads() const { return chain_.leads(); }
  bool is_head() const { return chain_.is_head(); }
  chain_status status() const;
  /// Null where it holds nothing.
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
  /// Translates what the shard and the chain decided, until nothing more follows from it.
  void carry_out(time_point now, replica_effects& effects);

  job_spec job_;
  generation_id generation_;
  replica_options options_;
  chain chain_;
  std::optional<shard> shard_;
  std::vector<clock_entry> workers_;

  std::deque<log_entry> log_; ///< From first_ on.
  std::uint64_t first_ = 1;
  std::uint64_t log_bytes_ = 0;
  std::uint64_t applied_ = 0;  ///< Entries up to it are in the values.
  std::uint64_t final_ = 0;    ///< Up to it they are to be.
  std::uint64_t released_ = 0; ///< Up to it nobody asks for them again.
  bool stepping_ = false;      ///< A step_effect was not confirmed yet.
  /// bsp clocks in the newest copy of it. A copy has no values of before its last step, which some
  /// may still ask for: whoever has the next clock too can answer them.
  std::uint64_t copied_clocks_ = 0;
  shard_effects decided_;

  /// The push of this event; and those of open bsp clocks.
  std::pair<request_token, std::shared_ptr<const push_request>> arriving_;
  std::map<request_token, std::shared_ptr<const push_request>> held_;
};

} // namespace troupe
