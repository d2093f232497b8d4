// Keeps the clock vector of one shard: its workers, their next clocks, and the admission of new
// workers.
#pragma once

#include "base/error.hpp"
#include "serialization/messages.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

/// A worker listed with this clock is waited for by no reader.
constexpr std::uint64_t unbound_clock = ~std::uint64_t{0};

/// An entry gets its clock in one of these ways:
///
///     listed, known == false --> promised --first push or pull--> heard
///     listed, known == true  --> unheard  --first push or pull--> heard
///
/// Invariants:
/// (1) only listed workers have an entry, one each: list() replaces the whole table. Held by:
///     assert in list().
/// (2) an entry's clock never falls while its incarnation stays listed: list() and advance() take
///     maxima. Held by: assert in list().
/// (3) a promise is fixed when it is made: list() makes one only for entries without a clock. Held
///     by: assert in promise().
class clock_table {
public:
  /// Replaces the list of workers. A worker with known == false is being admitted and may start at
  /// `promise`, which is fixed when the worker is first seen. Once it is listed as known with a
  /// later start clock, it moves there, unless it was heard before. A worker that the coordinator
  /// knows but this shard has not heard from is `unheard`. Without a promise, a worker that is
  /// being admitted is `unheard` too, until promise(). A known worker with unbound_clock keeps it,
  /// regardless of its requests, until it leaves.
  void list(const std::vector<clock_entry>& workers, std::optional<std::uint64_t> promise);
  /// Promises `clock` to the workers that are being admitted and have no clock yet.
  void promise(std::uint64_t clock);

  /// Returns why this incarnation may not push or pull: fenced if it was listed before and its
  /// successor is listed now, else not_ready. Nullopt: it may.
  std::optional<failure> rejection_of(worker_id worker, incarnation_id incarnation) const;

  /// Notes that the worker has pushed all clocks below `next`. Its own clock moves only up to
  /// `pending`, the first of its clocks that is not applied, and the rest of the way with a later
  /// call. Ignored if this incarnation is not listed: it may have left, or may be listed at other
  /// shards first.
  void advance(worker_id worker, incarnation_id incarnation, std::uint64_t next,
               std::uint64_t pending);
  /// Moves a worker's clock that pending clocks held up: now only those from `pending` on are
  /// pending.
  void settle(worker_id worker, incarnation_id incarnation, std::uint64_t pending);
  /// Forgets clocks that were pushed and not applied, since they may never be; clocks stay where
  /// they are.
  void forget_pushed();

  /// Returns the worker that readers of all clocks below `floor` wait for longest: an unheard one
  /// (known == false) first, then the one with the smallest clock below `floor`.
  std::optional<clock_entry> laggard(std::uint64_t floor) const;

  /// Returns the smallest clock of the workers that have one (heard or promised).
  std::optional<std::uint64_t> min() const;

  /// Returns all entries, ordered by worker. known: heard or promised.
  std::vector<clock_entry> entries() const;

private:
  enum class standing { unheard, promised, heard };
  struct entry {
    incarnation_id incarnation;
    std::uint64_t clock = 0;
    std::uint64_t pushed = 0; ///< All clocks below were pushed; some may be pending.
    standing state = standing::unheard;
    bool admitting = false; ///< As listed.
  };

  void remember_departed(worker_id worker, incarnation_id incarnation);

  /// Enough for every restart of a long job. Beyond it the oldest incarnations get not_ready in
  /// place of fenced, and never more than that: the fence is the list itself.
  static constexpr std::size_t departed_max = 1024;

  std::map<worker_id, entry> entries_;
  std::deque<std::pair<worker_id, incarnation_id>> departed_; ///< Oldest first.
};

} // namespace troupe
