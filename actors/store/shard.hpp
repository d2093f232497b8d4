// What a server decides: which push is applied, when a pull may be answered, what is remembered for
// exactly-once. A plain state machine: requests are named by the caller's tokens, values never come
// here. The actor (server_actor.hpp) and the simulator run the same code.
#pragma once

#include "actors/clock.hpp"
#include "actors/store/bsp_slots.hpp"
#include "actors/store/clock_table.hpp"
#include "actors/store/partition_marks.hpp"
#include "actors/store/request_token.hpp"
#include "serialization/error.hpp"
#include "serialization/histogram.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstdint>
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

// -- effects: what the caller has to do, in this order --

/// Take one optimiser step on `tables` with the mean of these pushes' gradients, added up in this
/// order. Always the last effect of an event. The caller must then call applied() or, where a
/// gradient was not finite, discarded(), before any other event.
struct apply_effect {
  std::vector<request_token> pushes;
  std::vector<table_id> tables;
  /// Blocks of these (table, partition) have this batch already and must be left alone; nearly
  /// always empty.
  std::vector<std::pair<table_id, partition_id>> skip;
  std::uint64_t staleness_versions = 0;
};
struct acknowledge_effect {
  request_token push;
  troupe::receipt receipt;
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

using shard_effect =
  std::variant<apply_effect, acknowledge_effect, refuse_effect, answer_effect, cut_effect>;
using shard_effects = std::vector<shard_effect>;

/// Who keeps the payload of a push: the caller, under its token, for as long as holds() says so.
/// That may change in the events that name the token: the push itself (a second copy's payload is
/// never needed), its acknowledge or refuse effect, and applied() or discarded() after an
/// apply_effect that names it. A bsp slot whose connection ended is still applied from the payload
/// that it brought; later copies of it only wait with it.
///
/// One push of a worker ends one of its clocks: it names all tables that the step is to change, so
/// either all of the job's bsp tables or none. In a job that mixes modes, the asp and ssp tables of
/// a push are applied when it arrives, its bsp tables with their clock, and then it is
/// acknowledged.
///
/// Determinism: effects are a function of the events; nothing is ordered by address or hash.
///
/// Invariants:
/// (1) a batch is applied to a (table, partition) at most once: marks are set in applied() alone,
///     in the same event as the step, and a marked batch is never part of an apply_effect for it.
/// (2) ssp: a pull at clock c is answered only if every working worker has pushed all clocks
///     <= c - s - 1. A worker that is being admitted counts with the clock that was promised for
///     it.
/// (3) bsp: clock t is applied once, when all its slots are there, in slot order; values of t stay
///     readable until t + 1 was applied.
/// (4) every push and pull gets exactly one acknowledge, refuse or answer, or is named in an open
///     bsp clock or waiting pull.
class shard {
public:
  /// Marks of bsp tables move by whole clocks, so those of `partitions` must end at a clock.
  shard(const job_spec& job, generation_id generation,
        const std::vector<shard_partition>& partitions, shard_options options = {});

  /// Workers that may push, from the coordinator's orders. Pulls waiting for one that left go on.
  void set_workers(const std::vector<clock_entry>& workers, shard_effects& effects);

  /// `tables` and `step` are the update's. Errors given as refuse_effect, the state is as before:
  /// rolled_back (of an older generation), not_ready (of a newer one; the worker is not listed; a
  /// bsp clock too far ahead), fenced (a later start of the worker is listed), malformed (batch
  /// beyond the job; a table unknown, listed twice, or some bsp tables listed and others not).
  /// A slot of a bsp clock that was pushed and is not applied yet is kept; a second copy of it
  /// takes the place of nothing: it is acknowledged, as a duplicate, when the first is applied.
  /// idempotent: yes.
  void push(request_token token, const step_header& step, const std::vector<table_id>& tables,
            std::uint64_t base_version, shard_effects& effects);
  /// The apply_effect was carried out / found the gradient of its push not finite.
  void applied(shard_effects& effects);
  void discarded(failure why, shard_effects& effects);

  /// `tables`: those the query names; it waits for all of them. latest: observers, never wait, need
  /// not be known, and neither generation, clock nor batch is looked at. Errors as with push().
  void pull(request_token token, const step_header& step, bool latest,
            const std::vector<table_id>& tables, time_point now, shard_effects& effects);

  /// Answers pulls whose patience ended with not_yet (naming the worker waited for).
  void tick(time_point now, shard_effects& effects);

  /// Asks for a cut_effect: at once, or for jobs with a bsp table when `clock` clocks are applied
  /// (at once where they already are). A newer request takes the place of one that waits.
  void request_cut(std::uint64_t checkpoint, std::uint64_t clock, shard_effects& effects);

  /// Whether the payload of this push is still to be applied.
  bool holds(request_token token) const;

  // -- what reports and checkpoints say --
  /// Batches applied on all partitions and tables.
  batch_set marks() const;
  std::vector<shard_partition> partitions() const;
  /// Ordered by worker; known: heard of, or being admitted with this clock as the promise.
  std::vector<clock_entry> clocks() const { return clocks_.entries(); }
  /// Largest clock of an answered pull that named an ssp table.
  std::uint64_t pull_clock_max() const { return pull_clock_max_; }
  /// Steps taken by this shard: one for each apply_effect. Restored: the largest of its partitions.
  std::uint64_t version() const { return version_; }
  generation_id generation() const { return generation_; }
  /// bsp: clocks applied.
  std::uint64_t bsp_clocks() const { return slots_.clocks(); }
  const server_counters& counters() const { return counters_; }
  /// A push that the caller refused itself, before push() (bsp: not finite on arrival).
  void count_refused() { ++counters_.refused; }

private:
  struct waiting_pull {
    request_token token;
    worker_id worker;
    incarnation_id incarnation;
    std::uint64_t clock = 0;
    std::optional<std::uint64_t> bsp_clock; ///< Named a bsp table: waits until these are applied.
    std::optional<std::uint64_t> floor;     ///< Named an ssp table: all must have pushed below it.
    std::vector<table_id> bsp_tables;
    time_point deadline;
  };
  /// A push whose asp and ssp tables are being applied.
  struct arrival {
    request_token token;
    step_header step;
    std::vector<table_id> tables;
    bool is_slot = false; ///< Its bsp tables are still to come.
    std::uint64_t staleness_versions = 0;
    std::uint64_t staleness_clocks = 0;
  };
  struct open_clock {};
  struct wanted_cut {
    std::uint64_t checkpoint = 0;
    std::uint64_t clock = 0;
  };

  bool is_bsp(table_id table) const;
  std::optional<failure> objection(const step_header& step) const;
  std::optional<failure> malformed_push(const std::vector<table_id>& tables) const;

  void finish(const arrival& done, shard_effects& effects);
  void finish(const open_clock& done, shard_effects& effects);
  void keep_or_acknowledge(request_token token, const step_header& step, bool is_slot, bool changed,
                           shard_effects& effects);
  void acknowledge(request_token token, bool duplicate, shard_effects& effects);

  /// What any event may have made possible: pulls, cuts, and then the next bsp clock.
  void go_on(shard_effects& effects);
  bool answerable(const waiting_pull& pull) const;
  void answer(const waiting_pull& pull, shard_effects& effects);
  std::string awaited(const waiting_pull& pull) const;
  void apply_next_clock(shard_effects& effects);

  job_spec job_;
  generation_id generation_;
  shard_options options_;
  std::vector<table_id> bsp_tables_;
  std::uint32_t staleness_min_ = 0; ///< Of the ssp tables.

  partition_marks marks_;
  std::uint64_t version_ = 0;
  clock_table clocks_;
  std::uint64_t pull_clock_max_ = 0;
  bsp_slots slots_;
  std::vector<waiting_pull> waiting_; ///< In order of arrival.
  /// The step that an apply_effect asked for and nobody has confirmed yet.
  std::optional<std::variant<arrival, open_clock>> open_;
  std::optional<wanted_cut> cut_;
  server_counters counters_;
};

} // namespace troupe
