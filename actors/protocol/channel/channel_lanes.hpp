// Holds the state of a lane at each of its ends. channel_hub decides.
#pragma once

#include "base/clock.hpp"
#include "serialization/ids.hpp"
#include "serialization/messages.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

namespace troupe {

/// Names a link of one hub; never reused.
using lane_link = id<struct lane_link_tag, std::uint64_t>;

/// Counts of one port, summed over its lanes.
struct port_counts {
  std::uint64_t parcels = 0; ///< Sent, or taken.
  std::uint64_t bytes = 0;   ///< Heads and tensors of them.
  /// At a sender: parcels that it did not know to be taken when their session ended; the receiver
  /// may have taken some of them. At a receiver 0: it takes all that it receives, unless it dies.
  std::uint64_t lost = 0;
  /// Longest wait of a lane for credit, at a sender: from the first send() or ready() that returned
  /// false to the next credit, or to the session's end. Includes a wait that goes on.
  std::chrono::microseconds longest_wait{0};

  bool operator==(const port_counts&) const = default;
};

/// The times of a lane that connects again.
class reconnect_pause {
public:
  static constexpr std::chrono::milliseconds least{20}, greatest{500};

  bool is_over(time_point now) const { return now >= until_; }
  void begin(time_point now) {
    until_ = now + next_;
    next_ = std::min<time_point>(2 * next_, greatest);
  }
  /// Forgets earlier failures. The next attempt may come at once.
  void reset() {
    until_ = {};
    next_ = least;
  }

private:
  time_point until_{0};
  time_point next_ = least;
};

/// A lane as its sender has it.
struct sending_lane {
  /// A link on its way to a session.
  struct attempt {
    lane_link link;
    member_id to;
    std::uint64_t session = 0; ///< 0: the link is not open yet.
  };
  struct session {
    lane_link link;
    member_id to;
    std::uint64_t number = 0;
    time_point since{0};
    std::uint64_t sent = 0, taken = 0;
    std::deque<std::uint64_t> bytes = {}; ///< Of each parcel that is sent and not taken.
    std::uint64_t bytes_open = 0;         ///< Their sum.
    bool is_heard = false;                ///< The program took `joined`.
  };

  std::optional<member_address> listed = {};
  std::optional<attempt> opening = {};
  std::optional<session> present = {};
  reconnect_pause pause = {};
  std::optional<member_id> tried = {};      ///< The last one that was connected to.
  std::optional<member_id> refused_by = {}; ///< It is not asked again.
  bool is_owed_writable = false;            ///< send() returned false.
  bool has_writable = false;                ///< `writable` is in the inbox.
  std::optional<time_point> waits_since = {};
  bool is_wait_told = false;
  port_counts counts = {};
};

/// A lane as its receiver has it.
struct receiving_lane {
  /// A link that asks for a session. It waits until all parcels of the last one are taken.
  struct attempt {
    lane_link link;
    std::uint64_t wire_session = 0;
  };
  struct session {
    lane_link link;
    std::uint64_t wire_session = 0; ///< As its sender numbers it.
    std::uint64_t number = 0;       ///< As this hub numbers it: senders do not know of each other.
    std::uint64_t received = 0, taken = 0;
    std::uint64_t told = 0;         ///< Parcels for which the sender got credit.
    std::uint64_t bytes_untold = 0; ///< Bytes that were taken since then.
    bool is_heard = false;          ///< The program took `joined`.
  };
  struct untaken {
    std::uint64_t session = 0; ///< As this hub numbers it.
    std::uint64_t sequence = 0;
    std::uint64_t bytes = 0;
  };

  std::optional<attempt> opening = {};
  std::optional<session> present = {};
  /// The newest session that was asked for: an older one of the same incarnation comes too late.
  member_id newest_from = {};
  std::uint64_t newest_session = 0;
  std::deque<untaken> parcels = {}; ///< Received and not taken, of all sessions.
  port_counts counts = {};
};

} // namespace troupe
