// Who is a member: which incarnation holds each seat, when it was last heard, and what it was told
// last. A plain value; the coordinator decides what follows from a loss.
#pragma once

#include "base/clock.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe {

/// Seats of servers, those that are added later included.
constexpr std::uint32_t servers_max = partitions_max;

/// A present incarnation.
struct member_entry {
  member_id id;
  std::uint64_t sequence = 0; ///< Of its newest report.
  time_point heard{0};        ///< When that came.
  std::optional<time_point>
    disconnected; ///< Its connection ended then, and it was not heard since.
  std::uint64_t rss_bytes_max = 0;
  desired_state sent; ///< The last ones; sequence 0: none.
  time_point sent_at{0};
  bool outdated = true; ///< What it should be told may differ from `sent`.
  resize obeyed;        ///< The wish of an observer that was carried out last.
};

/// Invariants:
/// (1) a seat, (role, index), has at most one incarnation; observers have a seat for each of
///     theirs.
/// (2) an incarnation that was buried never gets a seat again.
class membership {
public:
  enum class standing {
    news,     ///< It has the seat, and the report is newer than all before.
    joined,   ///< It took a free seat just now.
    repeated, ///< It has the seat, but the report is an old one.
    waiting,  ///< Another incarnation has the seat and may be alive.
    refused,  ///< Another incarnation has the seat and was heard since.
    buried,   ///< It was declared dead.
  };

  /// The incarnation that must be buried before the sender of a report can have its seat: its
  /// connection is gone, or it is a worker and was silent for 500 ms.
  std::optional<member_id> gives_way(const member_id& sender, time_point now) const;
  standing hear(const status_message& what, time_point now);

  /// The member's connection ended. It may come back; but its seat goes to who asks for it.
  void on_disconnect(const member_id& who, time_point now);
  /// Its seat is free. It may come back.
  void leave(const member_id& who);
  /// It is dead and stays so. Returns whether it had a seat.
  bool mark_dead(const member_id& who);
  /// Nobody of this name is or was a member: it died before it was heard.
  bool buried(const member_id& who) const { return buried_.contains(who); }

  /// Who has not been heard for longer than `timeout`.
  std::vector<member_id> silent(time_point now, std::chrono::milliseconds timeout) const;
  /// Forgives `gap` of silence: the coordinator itself did not run.
  void forgive(time_point gap);

  member_entry* find(const member_id& who);
  const std::map<member_id, member_entry>& all() const { return members_; }
  std::map<member_id, member_entry>& all() { return members_; }

private:
  std::map<member_id, member_entry> members_; ///< By seat.
  std::map<member_id, time_point> waiting_;   ///< First report of those who want a taken seat.
  std::set<member_id> buried_;
};

/// "server 0", "worker 3".
std::string name_of(const member_id& who);

} // namespace troupe
