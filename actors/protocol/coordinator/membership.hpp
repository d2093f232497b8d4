// Records the members: the incarnation that holds each slot, when it was last heard, and the
// desired state that it was sent. A plain value; the coordinator decides the consequences of a
// loss.
#pragma once

#include "base/clock.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <vector>

namespace troupe {

/// A present incarnation.
struct member_entry {
  member_id id;
  std::uint64_t sequence = 0;             ///< Sequence of its newest status.
  time_point heard{0};                    ///< When that status came.
  std::optional<time_point> disconnected; ///< When its connection ended, if it was not heard since.
  std::uint64_t rss_bytes_max = 0;
  std::string address; ///< Where it listens, as its first status said; empty: it does not.
  desired_state sent;  ///< The last desired state sent; sequence 0: none.
  time_point sent_at{0};
  resize reconciled; ///< The resize request of an observer that was applied last.
};

/// The present incarnation of a server.
struct server_entry {
  member_id id;
  server_status report;      ///< Its newest status.
  time_point trusted_at{0};  ///< When its last status came that counts as a sign of life.
  std::uint64_t echo_ns = 0; ///< The stamp of that status.
};

/// The present incarnation of an actor of a program, or the last one, if it had stopped.
struct actor_entry {
  member_id id;
  actor_status report; ///< Its newest status.
};

/// Invariants:
/// (1) a slot, (role, index), has at most one incarnation. An incarnation of a role without slots
///     has one of its own. Held by: assert in hear().
/// (2) an incarnation that was declared dead never gets a slot again. Held by: assert in
///     mark_dead(), hear().
class membership {
public:
  enum class standing {
    news,     ///< It has the slot, and the status is newer than all before.
    joined,   ///< It took a free slot just now.
    repeated, ///< It has the slot, but the status is an old one.
    waiting,  ///< Another incarnation has the slot and may be alive.
    refused,  ///< Another incarnation has the slot and was heard since.
    dead,     ///< It was declared dead.
  };

  /// Returns the incarnation that must be declared dead before the sender of a status can have its
  /// slot: its connection is gone, or it holds no values and was silent for 500 ms.
  std::optional<member_id> gives_way(const member_id& sender, time_point now) const;
  standing hear(const status_message& what, time_point now);

  /// Notes that the member's connection ended. It may come back, but its slot goes to an
  /// incarnation that asks for it.
  void on_disconnect(const member_id& who, time_point now);
  /// Frees its slot. It may come back.
  void leave(const member_id& who);
  /// Declares it dead for good. Returns whether it had a slot.
  bool mark_dead(const member_id& who);
  /// Returns whether it was declared dead, which may be before it was ever heard.
  bool is_dead(const member_id& who) const { return dead_.contains(who); }

  /// Returns the members that were not heard for longer than `timeout`.
  std::vector<member_id> silent(time_point now, std::chrono::milliseconds timeout) const;
  /// Extends all deadlines by `gap`, in which the coordinator itself did not run.
  void extend_deadlines(time_point gap);

  member_entry* find(const member_id& who);
  const std::map<member_id, member_entry>& all() const { return members_; }
  std::map<member_id, member_entry>& all() { return members_; }
  /// Returns the entries of workers, ordered by their indices.
  auto workers() const {
    return std::ranges::subrange(members_.lower_bound(member_of(worker_id{0})),
                                 members_.lower_bound(member_of(worker_id{workers_max})));
  }

private:
  std::map<member_id, member_entry> members_; ///< By slot.
  std::map<member_id, time_point> waiting_;   ///< First status of incarnations that want a taken
                                              ///< slot.
  std::set<member_id> dead_;
};

/// Returns "server 0", "worker 3".
std::string name_of(const member_id& who);

} // namespace troupe
