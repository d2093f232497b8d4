// Lists the batches of a worker's leases, and which of them are in flight or done.
#pragma once

#include "serialization/messages.hpp"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace troupe {

/// A batch is open, then in flight (a step was begun for it), then done; or it opens again.
class work_list {
public:
  /// Replaces the leases. A lease that is no longer listed is forgotten with all its batches, and
  /// so are batches that a shortened lease no longer names. A new coordinator that starts from an
  /// old status may name them again; they are open then. A new lease opens its batches even if they
  /// were done under an older one: a server has lost them.
  void set_leases(const std::vector<lease>& leases);
  /// Returns the smallest open batch: in bsp another worker may wait for it.
  std::optional<batch_id> next() const;
  void in_flight(batch_id batch);
  void done(batch_id batch);
  /// Opens the batch again, because its push failed.
  void reopen(batch_id batch);
  /// Forgets all leases and batches, because a new history begins.
  void clear();

  bool is_in_flight(batch_id batch) const { return in_flight_.contains(batch); }
  /// Returns whether a lease has just become wholly done, which the coordinator wants to hear at
  /// once.
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
