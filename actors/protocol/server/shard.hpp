// Decides which pushes become log entries, how committed entries take effect, and when pulls are
// answered. It remembers applied batches, so that each is applied exactly once. A plain state
// machine: the caller's tokens name requests, and values never come here.
#pragma once

#include "actors/protocol/clock_table.hpp"
#include "actors/protocol/request_token.hpp"
#include "actors/protocol/server/applied_batches.hpp"
#include "actors/protocol/server/bsp_slots.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "serialization/histogram.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

struct shard_options {
  /// A pull that cannot be answered for this time gets `not_yet`, and the client asks again.
  /// Shorter: more messages. Longer: a wrong assumption (a dead worker) is noticed later.
  std::chrono::milliseconds pull_patience{500};
};

/// The effect of a log entry, the same on every replica.
struct entry_header {
  /// Its batches, in the order in which they are added up: those of a push, or all slots of a bsp
  /// clock.
  std::vector<step_header> steps;
  /// The tables that they step, in ascending order: all tables with clocks of the job, or other
  /// tables only.
  std::vector<table_id> tables;
  /// Version of the values that the gradient was computed from. A bsp clock does not use it.
  std::uint64_t base_version = 0;

  bool operator==(const entry_header&) const = default;
};

// -- effects: the caller carries them out in this order --

/// Append this entry to the log, with the payloads of these pushes in this order. Always the last
/// effect of an event. The entry is pending until commit() or truncate(). Entries have the order of
/// these effects.
struct propose_effect {
  std::vector<request_token> pushes;
  entry_header entry;
};
/// Take one optimiser step on `tables` with the gradients of the oldest pending entry, added up in
/// its order. Always the last effect of an event. Before any other event the caller must call
/// applied() or, if a gradient was not finite, discarded().
struct apply_effect {
  std::vector<table_id> tables;
  /// Blocks of these (table, partition) pairs have this batch already and must be left alone;
  /// nearly always empty.
  std::vector<std::pair<table_id, partition_id>> skip;
  std::uint64_t staleness_versions = 0;
  /// Number of gradients whose mean the step takes: the slots of a bsp clock. A sum that was pushed
  /// is taken as it is, as if its batches had come one after the other.
  std::size_t pushes = 1;
};
struct acknowledge_effect {
  request_token push;
  troupe::push_reply push_reply;
};
struct refuse_effect {
  request_token request;
  failure why;
};
/// Answer a pull with the present values; for `previous` tables, with the values before their last
/// step. In bsp another server may still need slots of the clock before.
struct answer_effect {
  request_token pull;
  std::uint64_t version = 0;
  std::vector<table_id> previous;
};
/// Pin the values for this checkpoint now: the bsp clock that it waited for, if any, is applied.
struct cut_effect {
  std::uint64_t checkpoint = 0;
};

using shard_effect = std::variant<propose_effect, apply_effect, acknowledge_effect, refuse_effect,
                                  answer_effect, cut_effect>;
using shard_effects = std::vector<shard_effect>;

/// The terms of a pull, without the values that it asks for.
struct pull_terms {
  step_header step;
  std::vector<step_header> others = {}; ///< As pull_request::others.
  /// Pulls of observers: they never wait and need not be listed; generation, clock and batch are
  /// not checked.
  bool latest = false;
  std::vector<table_id> tables;
  std::uint64_t version_min = 0; ///< A version that the client knows of.
};

/// The state of one replica of a shard. The leading replica takes pushes and pulls and proposes
/// entries. Its followers append() these entries and may be asked to read(). On all replicas an
/// entry is pending until commit() or truncate():
///
///     push -> propose_effect --log, followers append()--> committed: commit() -> apply_effect
///               -> applied() or discarded() -> acknowledge_effect or refuse_effect
///
/// A chain of one server commits at once.
///
/// The caller keeps the payload of a push, under its token, while holds() is true; the payload of a
/// proposed push is in the log. holds() may change only in events that name the token: the push
/// itself, its acknowledge or refuse effect, and a propose_effect. The payload of a second copy is
/// never needed. A bsp slot whose connection ended is still applied from the payload that it
/// brought; later copies of it only wait with it.
///
/// Each push of a worker ends one of its clocks, unless it is partial. It names all tables that the
/// step is to change, so either all of the job's tables with clocks or none. In a job that mixes
/// modes, the other tables of a push become an entry when it arrives. Its tables with clocks are
/// part of their clock's entry, and the push is acknowledged when that entry is applied.
///
/// The worker of a line of parts brings a batch in one push for each part, all with the same step
/// but for step_header::is_partial. Their tables differ, so each push is an entry and a version of
/// its own, and several may be pending. A partial push ends no clock. The first part's push does,
/// and it comes only when all shards have acknowledged the partial ones.
///
/// A push may be the sum of several batches. It becomes an entry as a whole or not at all. If only
/// some of its batches may be applied, the sum is refused, and its batches may come one by one. A
/// partial push comes alone: later parts have routers of their own, without a reducer in front.
///
/// Determinism: effects are a function of the events; no order depends on an address or a hash.
/// batches_applied(), partitions(), version() and bsp_clocks() are a function of the entries and of
/// which of them were discarded, so they are the same on all replicas. clocks() of the leading
/// replica may be ahead, because it also sees pulls and repeated pushes.
///
/// Invariants:
/// (1) a batch is applied to a (table, partition) at most once: only applied() records it, in the
///     same event as the step, and an applied or pending batch is never proposed again. Held by:
///     assert in applied(); check_finished() in cli/sim/job_checks.cpp.
/// (2) ssp: a pull at clock c is answered only if every working worker has pushed all clocks <= c -
///     s - 1, and these are applied. A clock of a line is pushed when its first part has pushed it.
///     A worker that is being admitted counts with its promised clock. Held by: assert in answer();
///     check_staleness() in cli/sim/job_checks.cpp.
/// (3) bsp: clock t is applied once, when all its slots are there, in slot order; values of t stay
///     readable until t + 1 was applied. No clock is proposed while one is pending. Held by: assert
///     in propose_next_clock(), applied().
/// (4) every push and pull gets exactly one acknowledge, refuse or answer, or still waits: for a
///     pending entry, in an open bsp clock, or as a pull. Held by: assert in
///     replica_requests::acknowledged(), replica_requests::answered(), replica_requests::refused().
/// (5) only applied() changes batches_applied(), version() and bsp_clocks(): a replica that
///     truncates has a past state of its shard. Held by: check_applied() in cli/sim/job_checks.cpp.
class shard {
public:
  /// Applied batches of tables with clocks move by whole clocks, so those of `partitions` must end
  /// at a clock.
  shard(const job_spec& job, generation_id generation,
        const std::vector<shard_partition>& partitions, shard_options options = {});

  /// Sets the workers that may push, from the coordinator's desired state. Pulls that wait for a
  /// worker that left go on.
  void set_workers(const std::vector<clock_entry>& workers, shard_effects& effects);

  /// Takes a push request with these `steps` and `tables`. A slot of a bsp clock is kept until its
  /// clock is applied. A duplicate of a kept slot, or of a pending push, is acknowledged as a
  /// duplicate when the first one is applied.
  /// Errors come as refuse_effect and leave the state as before:
  /// - rolled_back: an older generation;
  /// - not_ready: a newer generation, a worker that is not listed, or a bsp clock too far ahead; or
  ///   a pending entry that shares a table with the push has only some of its batches or tables;
  /// - fenced: a later incarnation of the worker is listed;
  /// - malformed: a batch beyond the job; a batch or a worker listed twice; a table unknown or
  ///   listed twice; only some of the tables with clocks; a table with clocks in a partial push;
  /// - sum_not_applicable: only some batches of the sum are applied, or would be refused; or the
  ///   sum names tables with clocks, or has a partial step.
  ///
  /// idempotent: yes.
  void push(request_token token, const std::vector<step_header>& steps,
            const std::vector<table_id>& tables, std::uint64_t base_version,
            shard_effects& effects);

  // -- the log --
  /// Appends an entry that the leading replica proposed; this one does not lead. Requires: no
  /// push() and no pull() waits here (a read() may).
  void append(entry_header entry);
  /// Gives the apply_effect of the oldest pending entry, which is committed. Requires: there is
  /// one.
  void commit(shard_effects& effects);
  /// Ends an apply_effect: it was carried out, or a gradient was not finite. A discarded entry
  /// changes no replica, and its batches may come again.
  void applied(shard_effects& effects);
  void discarded(failure why, shard_effects& effects);
  /// Makes this replica lead. The leading replica promises start clocks to workers that are being
  /// admitted, so it has to know which workers have begun. push() and pull() imply lead(), and a
  /// shard leads until an append(), a follow() or a step_down().
  void lead();
  /// Stops leading: refuses, as not_ready, every push and pull that waits here. Pending entries
  /// stay. A waiting cut is forgotten; the next leading replica is asked for it.
  void step_down(shard_effects& effects);
  /// Makes this replica a follower with a copied state. The copied replica has answered no pull of
  /// a clock later than `pull_clock_max`: see pull_clock_max(). Call it before any other event.
  void follow(std::uint64_t pull_clock_max);
  /// Does step_down(), and drops the pending entries, which will not be committed through this
  /// replica.
  void truncate(shard_effects& effects);
  /// Returns the number of entries proposed or appended, and not yet applied, discarded or
  /// truncated.
  std::size_t pending() const { return pending_.size(); }

  /// Answers a pull as soon as the consistency of each named table and `version_min` allow it.
  /// Refuses it with an error of push() only if each of its workers has one.
  void pull(request_token token, const pull_terms& what, time_point now, shard_effects& effects);
  /// Answers a pull on a replica that does not lead, and does not advance clocks as pull() does.
  /// Refuses, as not_ready, a pull that names an ssp table and is not `latest`. Answered pulls
  /// decide where new workers may start, so one replica has to see them all.
  void read(request_token token, const pull_terms& what, time_point now, shard_effects& effects);

  /// Answers pulls whose patience has ended with not_yet, naming the worker that they wait for.
  void tick(time_point now, shard_effects& effects);

  /// Requests a cut_effect: when the entries that are pending now are applied or discarded or, in
  /// jobs that go by clocks, when `clock` clocks are applied (at once if they already are). A newer
  /// request replaces a waiting one.
  void request_cut(std::uint64_t checkpoint, std::uint64_t clock, shard_effects& effects);

  /// Returns whether the payload of this push is still to be proposed.
  bool holds(request_token token) const;

  // -- for statuses and checkpoints --
  /// Returns the pushes and pulls that wait here, and what each waits for.
  std::vector<std::pair<request_token, std::string>> waits() const;
  /// Returns the batches applied on all partitions and tables.
  batch_set batches_applied() const;
  std::vector<shard_partition> partitions() const;
  /// Returns the clocks, ordered by worker. known: heard, or being admitted with this promised
  /// clock.
  std::vector<clock_entry> clocks() const { return clocks_.entries(); }
  /// Returns a bound for promises of start clocks. No pull of a later clock that named an ssp table
  /// was answered, here or, as far as entries can tell, by earlier leading replicas.
  std::uint64_t pull_clock_max() const { return pull_clock_max_; }
  /// Returns the number of steps taken, one for each applied entry. A restored shard starts with
  /// the largest version of its partitions.
  std::uint64_t version() const { return version_; }
  generation_id generation() const { return generation_; }
  /// Returns the number of bsp clocks applied.
  std::uint64_t bsp_clocks() const { return slots_.clocks(); }
  /// Returns the counters of this replica; pushes count only on the leading one.
  const server_counters& counters() const { return counters_; }
  /// Counts a push that the caller refused itself, before push() (bsp: not finite on arrival).
  void count_refused() { ++counters_.refused; }

private:
  struct waiting_pull {
    request_token token;
    std::vector<step_header> readers; ///< The clock of the first one counts.
    std::optional<std::uint64_t>
      bsp_clock; ///< Names a table with clocks: waits until these are applied.
    std::optional<std::uint64_t> floor; ///< Names an ssp table: all must have pushed below it.
    std::uint64_t version_min = 0;
    std::vector<table_id> clock_tables;
    time_point deadline;
  };
  /// A push whose asp and ssp tables are pending.
  struct waiting_push {
    request_token token;
    std::vector<step_header> steps;
    bool is_slot = false;  ///< Its tables with clocks still wait for their clock.
    bool proposed = false; ///< The entry was made of this copy of its batch.
  };
  struct pending_entry {
    entry_header what;
    std::vector<waiting_push> waiting;  ///< Empty for a bsp clock: its pushes are in `slots_`.
    std::uint64_t staleness_clocks = 0; ///< Largest of its batches.
  };
  struct wanted_cut {
    std::uint64_t checkpoint = 0;
    std::uint64_t clock = 0;
    std::size_t before = 0; ///< Pending entries that it still has to contain.
  };

  bool takes_clocks(table_id table) const;
  std::optional<failure> rejection_of(const step_header& step) const;
  std::optional<failure> malformed_push(const std::vector<step_header>& steps,
                                        const std::vector<table_id>& tables) const;
  std::optional<failure> rejection_of(const std::vector<step_header>& steps) const;
  std::vector<table_id> missing(const std::vector<table_id>& tables, batch_id batch) const;
  bool equally_missing(const std::vector<table_id>& tables,
                       const std::vector<step_header>& steps) const;
  bool is_clock(const entry_header& entry) const { return takes_clocks(entry.tables.front()); }

  void propose_or_wait(waiting_push push, std::vector<table_id> tables, std::uint64_t base_version,
                       shard_effects& effects);
  pending_entry* pending_with(const std::vector<step_header>& steps,
                              const std::vector<table_id>& tables);
  void propose(pending_entry entry, std::vector<request_token> pushes, shard_effects& effects);
  void propose_next_clock(shard_effects& effects);
  bool is_whole_clock(const entry_header& entry) const;

  pending_entry take_committed();
  void finish_arrival(const pending_entry& done, shard_effects& effects);
  void finish_clock(shard_effects& effects);
  void keep_or_acknowledge(const waiting_push& push, shard_effects& effects);
  std::uint64_t promise() const;
  void hear(const step_header& step, std::uint64_t pushed_below);
  std::uint64_t first_pending(const step_header& step) const;
  void count_applied(std::uint64_t staleness_versions, std::uint64_t staleness_clocks);
  void acknowledge(request_token token, bool duplicate, shard_effects& effects);

  std::optional<failure> rejection_of(const pull_terms& what) const;
  waiting_pull wait_for(request_token token, const pull_terms& what, time_point now) const;
  void answer_or_keep(waiting_pull pull, shard_effects& effects);

  /// Does all that an event may have made possible: pulls, cuts, and then the next bsp clock.
  void go_on(shard_effects& effects);
  bool answerable(const waiting_pull& pull) const;
  void answer(const waiting_pull& pull, shard_effects& effects);
  std::string awaited(const waiting_pull& pull) const;

  job_spec job_;
  generation_id generation_;
  shard_options options_;
  std::vector<table_id> clock_tables_;
  std::optional<std::uint32_t> least_lead_;

  applied_batches applied_;
  std::uint64_t version_ = 0;
  clock_table clocks_;
  std::uint64_t pull_clock_max_ = 0;
  /// Other replicas promise no start clocks. A new worker starts at the largest promise that the
  /// coordinator heard of.
  bool leads_ = true;
  bsp_slots slots_;
  std::vector<waiting_pull> waiting_; ///< In order of arrival.
  std::deque<pending_entry> pending_; ///< Oldest first.
  bool applying_ = false;             ///< The oldest entry's apply_effect is not confirmed yet.
  std::optional<wanted_cut> cut_;
  server_counters counters_;
};

} // namespace troupe
