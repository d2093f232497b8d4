// What a worker has to do: the batches of its leases, which are done and which are on their way.
#pragma once

#include "serialization/messages.hpp"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace troupe {

/// A batch is open, then in flight (a step was begun for it), then done; or open again.
class work_list {
public:
  /// Leases that are no longer listed are forgotten with all their batches; so are batches that a
  /// lease, which may have become shorter, does not name any more. It names them again where a new
  /// coordinator goes by an old report: they are open then. A new lease opens its batches also
  /// where they were done under an older one: a server has lost them.
  void set_leases(const std::vector<lease>& leases);
  /// Smallest open batch: in bsp another worker may wait for it.
  std::optional<batch_id> next() const;
  void in_flight(batch_id batch);
  void done(batch_id batch);
  /// The push failed; the batch is open again.
  void reopen(batch_id batch);
  /// A new history: nothing is held.
  void clear();

  bool is_in_flight(batch_id batch) const { return in_flight_.contains(batch); }
  /// Whether some lease has just become wholly done, which the coordinator wants to hear at once.
  bool take_finished();
  std::vector<lease_progress> progress() const;

private:
  bool holds(batch_id batch) const;

  std::map<std::uint64_t, lease> leases_;
  std::set<batch_id> open_;
  std::set<batch_id> in_flight_;
  std::set<batch_id> done_;
  bool finished_ = false;
};

} // namespace troupe
