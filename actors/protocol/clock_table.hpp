// The clock vector of one shard: who works, each one's next clock, and how a new worker is let in.
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

/// Listed with this clock: nobody waits for the worker.
constexpr std::uint64_t unbound_clock = ~std::uint64_t{0};

/// Where an entry's clock comes from:
///
///     listed, known == false --> promised --first push or pull--> heard
///     listed, known == true  --> unheard  --first push or pull--> heard
///
/// Invariants:
/// (1) only listed workers have an entry, one each: list() replaces the whole table.
/// (2) an entry's clock never falls while its incarnation stays listed: list() and advance() take
///     maxima.
/// (3) a promise is fixed at first sight: list() makes one for entries without a clock only.
class clock_table {
public:
  /// Replaces the list of workers. One with known == false is being admitted and may start at
  /// `promise`, fixed when it is first seen; once listed as known with a later start clock, it
  /// moves there unless it was heard of before. One that is known but new here is unheard. Without
  /// a promise one that is being admitted is unheard too, until promise(). One that is known and
  /// unbound stays so, whatever it does, until it left.
  void list(const std::vector<clock_entry>& workers, std::optional<std::uint64_t> promise);
  /// To those that are being admitted and have none yet.
  void promise(std::uint64_t clock);

  /// Why this incarnation may not push or pull: fenced where its successor is listed and it was
  /// listed before, not_ready otherwise.
  std::optional<failure> rejection_of(worker_id worker, incarnation_id incarnation) const;

  /// The worker has pushed all clocks below `next`. Its own moves as far as `pending`, the first of
  /// its clocks that is not applied, and the rest of the way with a later call. Nothing where this
  /// start of it is not listed: it may have left since, or be listed elsewhere first.
  void advance(worker_id worker, incarnation_id incarnation, std::uint64_t next,
               std::uint64_t pending);
  /// What was pending is not, or only from `pending` on: moves its clock that was held up.
  void settle(worker_id worker, incarnation_id incarnation, std::uint64_t pending);
  /// What was pushed and not applied may never be: clocks stay where they are.
  void forget_pushed();

  /// The one that readers of everything below `floor` wait for longest: an unheard one (known ==
  /// false) first, then the smallest clock below `floor`.
  std::optional<clock_entry> laggard(std::uint64_t floor) const;

  /// Smallest clock of those that have one (heard or promised).
  std::optional<std::uint64_t> min() const;

  /// Ordered by worker. known: heard or promised.
  std::vector<clock_entry> entries() const;

private:
  enum class standing { unheard, promised, heard };
  struct entry {
    incarnation_id incarnation;
    std::uint64_t clock = 0;
    std::uint64_t pushed = 0; ///< All below; some of them may be pending.
    standing state = standing::unheard;
    bool admitting = false; ///< As it is listed.
  };

  void remember_departed(worker_id worker, incarnation_id incarnation);

  /// Enough for every restart of a long job; beyond it the oldest ones get not_ready, and never
  /// more than that: the fence is the list itself.
  static constexpr std::size_t departed_max = 1024;

  std::map<worker_id, entry> entries_;
  std::deque<std::pair<worker_id, incarnation_id>> departed_; ///< Oldest first.
};

} // namespace troupe
