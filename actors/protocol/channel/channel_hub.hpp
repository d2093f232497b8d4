// Decides the lanes of one member: sessions, credit, and the order in which its callbacks hear of
// parcels and of the other ends. A plain state machine: messages, lists and times in, effects out.
#pragma once

#include "base/clock.hpp"
#include "base/error.hpp"
#include "serialization/channel.hpp"
#include "serialization/ids.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// One end of a channel, as one member has it.
struct channel_end {
  std::string channel; ///< Equal at both ends: "players.seen>learners.came".
  std::string port;    ///< "seen"
  bool sends = false;
  std::string head; ///< The type of the heads (head_type_of() in actors/training/ports.hpp).
  /// The members at the other end, without incarnations. The number of one is its index here.
  std::vector<member_id> peers;
  std::uint32_t window = 8; ///< Parcels under way on a lane, 1 .. channel_window_max.

  bool operator==(const channel_end&) const = default;
};

/// Names a link of the hub's shell; never reused.
using lane_link = id<struct lane_link_tag, std::uint64_t>;

/// A parcel, or news of the other end of a lane.
struct channel_event {
  enum class kind : std::uint8_t { parcel, joined, lost, writable };
  kind what = kind::parcel;
  std::size_t end = 0;       ///< Index of the channel_end.
  std::uint32_t peer = 0;    ///< Number of the other member.
  std::uint64_t session = 0; ///< Of the hub: pass it to taken().
  parcel_message parcel = {};
};

/// Carries out what the hub decides. Called within calls of the hub; must not call it.
class channel_effects {
public:
  virtual ~channel_effects() = default;
  /// Begins to connect. opened() or closed() follows.
  virtual void connect(lane_link link, const member_address& to) = 0;
  virtual void send(lane_link link, channel_message what) = 0;
  /// Refuses an accepted link with a reason, and closes it.
  virtual void refuse(lane_link link, const failure& why) = 0;
  /// Closes a link; closed() may follow, and has no effect.
  virtual void close(lane_link link) = 0;
  /// The inbox has an event, and had none before.
  virtual void wake() = 0;
  /// A line for a person: a lane waits for credit, or does so no longer (empty text).
  virtual void waits(std::size_t end, std::uint32_t peer, const std::string& text) = 0;
  /// The member cannot go on: the ends of a channel have different types.
  virtual void fail(const failure& why) = 0;
};

/// Counts of one port, summed over its lanes.
struct port_counts {
  std::uint64_t parcels = 0;                 ///< Sent, or taken.
  std::uint64_t bytes = 0;                   ///< Heads and tensors of them.
  std::uint64_t lost = 0;                    ///< Sent and never taken; received and never taken.
  std::chrono::microseconds longest_wait{0}; ///< For credit, of a sender; includes a present one.

  bool operator==(const port_counts&) const = default;
};

/// Units: parcels; bytes of heads and tensors.
/// Errors: none to the caller, but send(); wrong messages of a peer end that session.
/// Determinism: the same calls give the same effects and events.
/// Capacity: the windows of all incoming lanes.
/// Invariants (each names its assert or its checker of `troupe sim`):
/// (1) at most `window` parcels of a session are sent and not taken.
/// (2) a session's events are joined, parcels in order, lost. No event of a later session of the
///     lane comes before `lost` of the earlier one.
/// (3) a parcel is delivered in the session in which it was sent, once, or never.
/// (4) a lane has at most one session at a time, and no session without `joined`.
class channel_hub {
public:
  /// `self`: this incarnation. `ends`: those of this member.
  channel_hub(const member_id& self, std::vector<channel_end> ends);

  // -- events of the shell --
  /// Takes the members that listen at present; lanes to others end.
  void listed(std::span<const member_address> all, time_point now, channel_effects& out);
  /// A link that connect() began is open.
  void opened(lane_link link, time_point now, channel_effects& out);
  /// Another member connected. Its first message says which lane it is.
  void accepted(lane_link link, const member_id& from, time_point now, channel_effects& out);
  void received(lane_link link, channel_message what, time_point now, channel_effects& out);
  /// A link ended, or could not be made. `refused`: the peer gave this reason, which ends the member.
  void closed(lane_link link, time_point now, channel_effects& out,
              const std::optional<failure>& refused = std::nullopt);
  /// Connects again, and tells of lanes that wait. Call it at least each 100 ms.
  void tick(time_point now, channel_effects& out);

  // -- calls of the program's thread --
  /// Sends a parcel, unless there is no session or no credit. Requires: an end that sends, a peer
  /// of it, and a head and tensors within the limits of channel.hpp.
  bool send(std::size_t end, std::uint32_t peer, std::vector<std::byte> head,
            std::vector<parcel_tensor> tensors, time_point now, channel_effects& out);
  bool ready(std::size_t end, std::uint32_t peer) const;
  /// Takes the next event out of the inbox.
  std::optional<channel_event> next();
  /// Notes that a parcel's callback has returned.
  void taken(const channel_event& which, time_point now, channel_effects& out);

  const std::vector<channel_end>& ends() const { return ends_; }
  /// Returns the counts of a port.
  port_counts counts(std::size_t end, time_point now) const;

private:
  std::vector<channel_end> ends_;
};

} // namespace troupe
