// What a server decides: which push is applied, when a pull may be answered, what is remembered for
// exactly-once. A plain state machine: requests are named by the caller's tokens, values never come
// here. The actor (server_actor.hpp) and the simulator run the same code.
#pragma once

#include "serialization/error.hpp"
#include "serialization/histogram.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

namespace troupe {

/// Any clock that only grows: the actor's, or the simulator's.
using time_point = std::chrono::nanoseconds;

/// The caller's name of an open request.
using request_token = id<struct request_tag, std::uint64_t>;

/// What a shard starts with: fresh, or read from a checkpoint.
struct shard_partition {
  partition_id partition;
  std::uint64_t version = 0;
  std::vector<batch_set> marks; ///< One for each table of the job.
};

struct shard_options {
  /// A pull that cannot be answered for so long gets `not_yet`; the asker comes again. Shorter: more
  /// messages; longer: a wrong belief (a dead worker) is noticed later.
  std::chrono::milliseconds pull_patience{500};
};

// -- effects: what the caller has to do, in this order --

/// Take one optimiser step on `tables` with the mean of these pushes' gradients, added up in this
/// order. The caller must then call applied() or, where a gradient was not finite, discarded(),
/// before any other event.
struct apply_effect {
  std::vector<request_token> pushes;
  std::vector<table_id> tables;
  /// Blocks of these (table, partition) have this batch already and must be left alone; nearly
  /// always empty.
  std::vector<std::pair<table_id, partition_id>> skip;
  std::uint64_t staleness_versions = 0;
};
struct acknowledge_effect { request_token push; troupe::receipt receipt; };
struct refuse_effect { request_token request; failure why; };
/// Answer a pull with the present values; those of `previous` tables with the values before their
/// last step (bsp: another server may still need slots of the clock before).
struct answer_effect {
  request_token pull;
  std::uint64_t version = 0;
  std::vector<table_id> previous;
};
/// The bsp clock that a checkpoint waited for has been applied: pin the values now.
struct cut_effect { std::uint64_t checkpoint = 0; };

using shard_effect = std::variant<apply_effect, acknowledge_effect, refuse_effect, answer_effect,
                                  cut_effect>;
using shard_effects = std::vector<shard_effect>;

/// Invariants:
/// (1) a batch is applied to a (table, partition) at most once: marks are set in applied() alone, in
///     the same event as the step, and a marked batch is never part of an apply_effect for it.
/// (2) ssp: a pull at clock c is answered only if every working worker has pushed all clocks
///     <= c - s - 1. A worker that is being admitted counts with the clock that was promised for it.
/// (3) bsp: clock t is applied once, when all its slots are there, in slot order; values of t stay
///     readable until t + 1 was applied.
/// (4) every push and pull gets exactly one acknowledge, refuse or answer, or is named in an open
///     bsp clock or waiting pull.
class shard {
public:
  shard(const job_spec& job, generation_id generation, std::vector<shard_partition> partitions,
        shard_options options = {});

  /// Workers that may push, from the coordinator's orders. Pulls waiting for one that left go on.
  void set_workers(const std::vector<clock_entry>& workers, shard_effects& effects);

  /// `tables` and `step` are the update's. Errors given as refuse_effect: fenced (a newer incarnation
  /// of the worker is known), not_ready (the worker is not known yet), rolled_back (another
  /// generation), malformed (batch beyond the job, a table unknown).
  /// A slot of a bsp clock that was pushed and is not applied yet is kept; a second copy of it takes
  /// the place of nothing: it is acknowledged when the first is applied.
  void push(request_token token, const step_header& step, const std::vector<table_id>& tables,
            std::uint64_t base_version, shard_effects& effects);
  /// The apply_effect was carried out / found the gradient of its push not finite.
  void applied(shard_effects& effects);
  void discarded(failure why, shard_effects& effects);

  /// `tables`: those the query names. latest: observers, never wait, need not be known.
  void pull(request_token token, const step_header& step, bool latest,
            const std::vector<table_id>& tables, time_point now, shard_effects& effects);

  /// Answers pulls whose patience ended with not_yet (naming the worker waited for).
  void tick(time_point now, shard_effects& effects);
  /// When tick() has something to do next.
  std::optional<time_point> next_tick() const;

  /// Asks for a cut_effect: at once, or for jobs with a bsp table when `clock` clocks are applied
  /// (at once where they already are).
  void request_cut(std::uint64_t checkpoint, std::uint64_t clock, shard_effects& effects);

  /// The connection of a request ended; forget the token (a kept bsp slot stays).
  void forget(request_token token);

  // -- what reports and checkpoints say --
  /// Batches applied on all partitions and tables.
  batch_set marks() const;
  std::vector<shard_partition> partitions() const;
  std::vector<clock_entry> clocks() const;
  std::uint64_t pull_clock_max() const;
  std::uint64_t version() const;
  generation_id generation() const;
  /// bsp: clocks applied.
  std::uint64_t bsp_clocks() const;
  const server_counters& counters() const;
  /// A push that the caller refused itself, before push() (bsp: not finite on arrival).
  void count_refused();

  // The members are the implementer's to choose.
};

} // namespace troupe
