// What a server decides: which push becomes an entry of the log, what an entry does once it is
// final, when a pull may be answered, what is remembered for exactly-once. A plain state machine:
// requests are named by the caller's tokens, values never come here.
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
  /// A pull that cannot be answered for so long gets `not_yet`; the asker comes again. Shorter:
  /// more messages; longer: a wrong belief (a dead worker) is noticed later.
  std::chrono::milliseconds pull_patience{500};
};

/// What an entry of the log does, on every replica.
struct entry_header {
  /// Its batches, in the order in which they are added up: those of a push, or all slots of a bsp
  /// clock.
  std::vector<step_header> steps;
  /// The tables that they step, in ascending order: all bsp tables of the job, or others only.
  std::vector<table_id> tables;
  /// Of the values that the gradient was computed from. A bsp clock has no use for it.
  std::uint64_t base_version = 0;

  bool operator==(const entry_header&) const = default;
};

// -- effects: what the caller has to do, in this order --

/// Append this entry to the log, with the payloads of these pushes, in this order. Always the last
/// effect of an event. The entry is pending from now on, until commit() or truncate(); the order of
/// these effects is that of the entries.
struct propose_effect {
  std::vector<request_token> pushes;
  entry_header entry;
};
/// Take one optimiser step on `tables` with the gradients of the oldest pending entry, added up in
/// its order. Always the last effect of an event. The caller must then call applied()
/// or, where a gradient was not finite, discarded(), before any other event.
struct apply_effect {
  std::vector<table_id> tables;
  /// Blocks of these (table, partition) have this batch already and must be left alone; nearly
  /// always empty.
  std::vector<std::pair<table_id, partition_id>> skip;
  std::uint64_t staleness_versions = 0;
  /// Gradients whose mean the step takes: the slots of a bsp clock. A sum that was pushed is taken
  /// as it is, as if its batches had come one after the other.
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
/// Answer a pull with the present values; those of `previous` tables with the values before their
/// last step (bsp: another server may still need slots of the clock before).
struct answer_effect {
  request_token pull;
  std::uint64_t version = 0;
  std::vector<table_id> previous;
};
/// The bsp clock that a checkpoint waited for has been applied: pin the values now.
struct cut_effect {
  std::uint64_t checkpoint = 0;
};

using shard_effect = std::variant<propose_effect, apply_effect, acknowledge_effect, refuse_effect,
                                  answer_effect, cut_effect>;
using shard_effects = std::vector<shard_effect>;

/// What a pull asks for, but for the values.
struct pull_terms {
  step_header step;
  std::vector<step_header> others = {}; ///< query::others.
  /// Observers: never wait, need not be known; neither generation, clock nor batch is looked at.
  bool latest = false;
  std::vector<table_id> tables;
  std::uint64_t version_min = 0; ///< The asker knows of this one.
};

/// The state of one replica of a chain. Who leads it is asked to push and pull, and proposes
/// entries; its followers append() them and may be asked to read(). On all of them an entry is
/// pending until commit() or truncate():
///
///     push -> propose_effect --log, followers append()--> final: commit() -> apply_effect
///               -> applied() or discarded() -> acknowledge_effect or refuse_effect
///
/// A chain of one commits at once.
///
/// Who keeps the payload of a push: the caller, under its token, for as long as holds() says so;
/// that of a proposed one is in the log. holds() may change in the events that name the token: the
/// push itself (a second copy's payload is never needed), its acknowledge or refuse effect, and a
/// propose_effect. A bsp slot whose connection ended is still applied from the payload that it
/// brought; later copies of it only wait with it.
///
/// One push of a worker ends one of its clocks: it names all tables that the step is to change, so
/// either all of the job's bsp tables or none. In a job that mixes modes, the asp and ssp tables of
/// a push are an entry when it arrives, its bsp tables are part of their clock's, and when that is
/// applied it is acknowledged.
///
/// A push may be the sum of several batches. It is an entry as a whole or not at all: where some of
/// its batches may be applied and others not, it is refused, and its parts may come one by one.
///
/// Determinism: effects are a function of the events; nothing is ordered by address or hash.
/// marks(), partitions(), version() and bsp_clocks() are a function of the entries and of which of
/// them were discarded, so they are the same on all replicas. clocks() of the one that leads may be
/// ahead: it hears of pulls and repeated pushes too.
///
/// Invariants:
/// (1) a batch is applied to a (table, partition) at most once: marks are set in applied() alone,
///     in the same event as the step, and what is marked or pending is never proposed again.
/// (2) ssp: a pull at clock c is answered only if every working worker has pushed all clocks
///     <= c - s - 1, and these are applied. A worker that is being admitted counts with the clock
///     that was promised for it.
/// (3) bsp: clock t is applied once, when all its slots are there, in slot order; values of t stay
///     readable until t + 1 was applied. No clock is proposed while one is pending.
/// (4) every push and pull gets exactly one acknowledge, refuse or answer, or waits for a pending
///     entry, in an open bsp clock or as a pull.
/// (5) nothing but applied() changes marks, version() and bsp_clocks(): a replica that truncates
///     has a past state of its chain.
class shard {
public:
  /// Marks of bsp tables move by whole clocks, so those of `partitions` must end at a clock.
  shard(const job_spec& job, generation_id generation,
        const std::vector<shard_partition>& partitions, shard_options options = {});

  /// Workers that may push, from the coordinator's orders. Pulls waiting for one that left go on.
  void set_workers(const std::vector<clock_entry>& workers, shard_effects& effects);

  /// `steps` and `tables` are the update's. Errors given as refuse_effect, the state is as before:
  /// rolled_back (of an older generation), not_ready (of a newer one; the worker is not listed; a
  /// bsp clock too far ahead; a pending entry has some of its batches, or for some of its tables
  /// only), fenced (a later start of the worker is listed), malformed (batch beyond the job; a
  /// batch or a worker listed twice; a table unknown, listed twice, or some bsp tables listed and
  /// others not), sum_not_applicable (of a sum some batches are marked, or would be refused, and
  /// others not; it names bsp tables). A slot of a bsp clock that was pushed and is not applied yet
  /// is kept. A duplicate of it, or of a pending push, is acknowledged as a duplicate when the
  /// first one is applied.
  /// idempotent: yes.
  void push(request_token token, const std::vector<step_header>& steps,
            const std::vector<table_id>& tables, std::uint64_t base_version,
            shard_effects& effects);

  // -- the log --
  /// An entry that another replica proposed is in the log: that one leads. Requires: no push and no
  /// pull waits here.
  void append(entry_header entry);
  /// The oldest pending entry is final: gives its apply_effect. Requires: there is one.
  void commit(shard_effects& effects);
  /// The apply_effect was carried out / found a gradient not finite: then its entry changes nothing
  /// on any replica, and its batches may come again.
  void applied(shard_effects& effects);
  void discarded(failure why, shard_effects& effects);
  /// This replica leads: it makes promises to workers that are being admitted, so it has to know
  /// who has begun to work. A push and a pull tell the same, and a shard that has seen neither an
  /// append() nor a step_down() leads.
  void lead();
  /// This replica leads no more: refuses, as not_ready, every push and pull that waits here.
  /// Pending entries stay. A cut that waits is forgotten: who leads next is asked.
  void step_down(shard_effects& effects);
  /// This replica's state is a copy, of a replica that has answered no pull of a later clock: see
  /// pull_clock_max(). It does not lead. Call it before any other event.
  void follow(std::uint64_t pull_clock_max);
  /// The same, and the pending entries will not become final through this replica.
  void truncate(shard_effects& effects);
  /// Entries proposed or appended, and not applied, discarded or truncated yet.
  std::size_t pending() const { return pending_.size(); }

  /// Waits for all tables that it names, as each of them demands, and for `version_min`. Errors as
  /// with push(), where there are some for all of those who ask.
  void pull(request_token token, const pull_terms& what, time_point now, shard_effects& effects);
  /// The same of a replica that does not lead, without what a pull tells the one that does. Refuses
  /// as not_ready what names an ssp table: which pulls were answered decides where others may
  /// begin, so one replica has to know them all.
  void read(request_token token, const pull_terms& what, time_point now, shard_effects& effects);

  /// Answers pulls whose patience ended with not_yet (naming the worker waited for).
  void tick(time_point now, shard_effects& effects);

  /// Asks for a cut_effect: at once, or for jobs with a bsp table when `clock` clocks are applied
  /// (at once where they already are). A newer request takes the place of one that waits.
  void request_cut(std::uint64_t checkpoint, std::uint64_t clock, shard_effects& effects);

  /// Whether the payload of this push is still to be proposed.
  bool holds(request_token token) const;

  // -- what reports and checkpoints say --
  /// Batches applied on all partitions and tables.
  batch_set marks() const;
  std::vector<shard_partition> partitions() const;
  /// Ordered by worker; known: heard of, or being admitted with this clock as the promise.
  std::vector<clock_entry> clocks() const { return clocks_.entries(); }
  /// No pull of a later clock that named an ssp table was answered, here or, as far as entries can
  /// tell, by who led before. A start clock is promised by it.
  std::uint64_t pull_clock_max() const { return pull_clock_max_; }
  /// Steps taken: one for each entry that was applied. Restored: the largest of its partitions.
  std::uint64_t version() const { return version_; }
  generation_id generation() const { return generation_; }
  /// bsp: clocks applied.
  std::uint64_t bsp_clocks() const { return slots_.clocks(); }
  /// Of what was asked here: a follower's are 0.
  const server_counters& counters() const { return counters_; }
  /// A push that the caller refused itself, before push() (bsp: not finite on arrival).
  void count_refused() { ++counters_.refused; }

private:
  struct waiting_pull {
    request_token token;
    std::vector<step_header> responders;    ///< The first one's clock counts.
    std::optional<std::uint64_t> bsp_clock; ///< Named a bsp table: waits until these are applied.
    std::optional<std::uint64_t> floor;     ///< Named an ssp table: all must have pushed below it.
    std::uint64_t version_min = 0;
    std::vector<table_id> bsp_tables;
    time_point deadline;
  };
  /// A push whose asp and ssp tables are pending.
  struct waiting_push {
    request_token token;
    std::vector<step_header> steps;
    bool is_slot = false;  ///< Its bsp tables are still to come.
    bool proposed = false; ///< The entry was made of this copy of its batch.
  };
  struct pending_entry {
    entry_header what;
    std::vector<waiting_push> waiting;  ///< None of a bsp clock: they are in `slots_`.
    std::uint64_t staleness_clocks = 0; ///< Of the batch that has most.
  };
  struct wanted_cut {
    std::uint64_t checkpoint = 0;
    std::uint64_t clock = 0;
  };

  bool is_bsp(table_id table) const;
  std::optional<failure> rejection_of(const step_header& step) const;
  std::optional<failure> malformed_push(const std::vector<table_id>& tables) const;
  std::optional<failure> rejection_of(const std::vector<step_header>& steps) const;
  std::vector<table_id> missing(const std::vector<table_id>& tables, batch_id batch) const;
  bool equally_missing(const std::vector<table_id>& tables,
                       const std::vector<step_header>& steps) const;
  bool is_clock(const entry_header& entry) const { return is_bsp(entry.tables.front()); }

  void propose_or_wait(waiting_push push, std::vector<table_id> tables, std::uint64_t base_version,
                       shard_effects& effects);
  pending_entry* pending_with(const std::vector<step_header>& steps,
                              const std::vector<table_id>& tables);
  void propose(pending_entry entry, std::vector<request_token> pushes, shard_effects& effects);
  void propose_next_clock(shard_effects& effects);

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

  /// What any event may have made possible: pulls, cuts, and then the next bsp clock.
  void go_on(shard_effects& effects);
  bool answerable(const waiting_pull& pull) const;
  void answer(const waiting_pull& pull, shard_effects& effects);
  std::string awaited(const waiting_pull& pull) const;

  job_spec job_;
  generation_id generation_;
  shard_options options_;
  std::vector<table_id> bsp_tables_;
  std::optional<std::uint32_t> staleness_min_; ///< Of the ssp tables.

  applied_batches marks_;
  std::uint64_t version_ = 0;
  clock_table clocks_;
  std::uint64_t pull_clock_max_ = 0;
  /// Others make no promises: who is admitted starts at the largest that the coordinator heard of.
  bool leads_ = true;
  bsp_slots slots_;
  std::vector<waiting_pull> waiting_; ///< In order of arrival.
  std::deque<pending_entry> pending_; ///< Oldest first.
  bool applying_ = false; ///< The oldest one's apply_effect was given and is not confirmed yet.
  std::optional<wanted_cut> cut_;
  server_counters counters_;
};

} // namespace troupe
