// Decides the lanes of one member: sessions, credit, and the order in which its callbacks hear of
// parcels and of the other ends. A plain state machine: messages, lists and times in, effects out.
#pragma once

#include "actors/protocol/channel/channel_lanes.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "serialization/channel.hpp"
#include "serialization/ids.hpp"
#include "serialization/messages.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// One end of a channel, as one member has it.
struct channel_end {
  std::string channel; ///< Equal at both ends: "players>learners", or "players>learners.2".
  std::string port;    ///< "seen"
  bool sends = false;
  std::string head; ///< The type of the heads (head_type_of() in actors/training/ports.hpp).
  /// The members at the other end, without incarnations. The number of one is its index here.
  std::vector<member_id> peers;
  std::uint32_t window = channel_window_default; ///< Parcels under way, 1 .. channel_window_max.
  /// Size of each head; a parcel with another one ends its session. 0: of any size.
  std::size_t head_bytes = 0;
  /// While this many bytes of parcels are under way on a lane, its sender has no credit.
  std::uint64_t bytes_max = lane_bytes_max;

  bool operator==(const channel_end&) const = default;
};

/// A parcel, or news of the other end of a lane.
struct channel_event {
  enum class kind : std::uint8_t { parcel, joined, lost, writable };
  kind what = kind::parcel;
  std::size_t end = 0;       ///< Index of the channel_end.
  std::uint32_t peer = 0;    ///< Number of the other member.
  std::uint64_t session = 0; ///< Of the hub: pass it to taken().
  parcel_message parcel = {};
};

/// The links of one member's lanes. Called within calls of the hub: must not block or call it.
class lane_links {
public:
  virtual ~lane_links() = default;
  /// Begins to connect. opened() or closed() follows, after this call.
  virtual void connect(lane_link link, const member_address& to) = 0;
  /// Sends a message. It is lost if the link has ended, and the hub has not heard of that yet.
  virtual void send(lane_link link, channel_message what) = 0;
  /// Refuses an accepted link with a reason (contract_broken), and closes it.
  virtual void refuse(lane_link link, const failure& why) = 0;
  /// Closes a link; closed() may follow, and has no effect.
  virtual void close(lane_link link) = 0;
};

/// Carries out what the hub decides. Called within calls of the hub; must not call it.
class channel_effects : public lane_links {
public:
  /// The inbox has an event, and had none before.
  virtual void wake() = 0;
  /// A line for a person, without the port: a lane waits for credit, or no longer (empty text).
  virtual void waits(std::size_t end, std::uint32_t peer, const std::string& text) = 0;
  /// The member cannot go on: the ends of a channel have different types.
  virtual void fail(const failure& why) = 0;
};

/// Units: parcels; bytes of heads and tensors.
/// Errors: none. A wrong message of a peer ends its link.
/// Determinism: the same calls give the same effects and events.
/// Capacity: the inbox holds the windows of all incoming lanes, and four more events for each lane.
/// A session that the program has not heard of ends without an event, and a new one of a lane waits
/// until the parcels of the old one are taken.
/// Invariants:
/// (1) at most `window` parcels of a session are sent and not taken, and all but the last of them
///     have fewer than `bytes_max` bytes. Held by: check_send() in cli/sim/channel_checks.cpp.
/// (2) a session's events are joined, parcels in order, lost. No event of a later session of the
///     lane comes before `lost` of the earlier one. Held by: check_joined(), check_lost(),
///     check_parcel() in cli/sim/channel_checks.cpp.
/// (3) a parcel is delivered in the session in which it was sent, once, or never. Held by:
///     check_parcel() in cli/sim/channel_checks.cpp.
/// (4) a lane has at most one session at a time, and its program sends in a session only after it
///     took `joined`. Held by: check_joined(), check_send() in cli/sim/channel_checks.cpp.
/// (5) parcels are taken in the order in which they were received. Held by: assert in taken().
/// (6) the inbox keeps to its capacity. Held by: check_inbox() in cli/sim/channel_checks.cpp.
class channel_hub {
public:
  struct lane_key {
    std::size_t end = 0;
    std::uint32_t peer = 0;
    auto operator<=>(const lane_key&) const = default;
  };

  /// `self`: this incarnation. `ends`: those of this member.
  channel_hub(const member_id& self, std::vector<channel_end> ends);

  // -- events of the shell --
  /// Takes the members that listen at present. A sender connects to those without a link. A session
  /// goes on if its receiver is missing here, as a coordinator that starts again lists few members.
  /// If another incarnation of it is listed, that one takes its place when it accepts a session.
  void listed(std::span<const member_address> all, time_point now, channel_effects& out);
  /// Returns a name for a link that another member opened; pass it to accepted().
  lane_link new_link() { return {++links_made_}; }
  /// A link that connect() began is open.
  void opened(lane_link link, channel_effects& out);
  /// Another member connected. Its first message says which lane it is.
  void accepted(lane_link link, const member_id& from, time_point now);
  void received(lane_link link, channel_message what, time_point now, channel_effects& out);
  /// A link ended, or could not be made. `refused`: the peer gave this reason, which ends the
  /// member. The hub does not connect to that incarnation again.
  void closed(lane_link link, time_point now, channel_effects& out,
              const std::optional<failure>& refused = std::nullopt);
  /// Connects again, tells of lanes that wait, and gives credit that is left over. Call it at least
  /// each 100 ms.
  void tick(time_point now, channel_effects& out);

  /// Returns the lane whose present session a link carries.
  std::optional<lane_key> lane_of(lane_link link) const;

  // -- calls of the program's thread --
  /// Sends a parcel, unless there is no session that the program has heard of, or no credit. After
  /// false, one `writable` follows when it can succeed. Requires: an end that sends, a peer of it,
  /// and a head and tensors within the limits of channel.hpp.
  bool send(std::size_t end, std::uint32_t peer, std::vector<std::byte> head,
            std::vector<parcel_tensor> tensors, time_point now, channel_effects& out);
  /// Returns whether send() would succeed. If it lacks credit, the lane waits from now on.
  bool ready(std::size_t end, std::uint32_t peer, time_point now);
  /// Takes the next event out of the inbox. Call it until it returns nullopt: wake() says when the
  /// inbox has events again.
  std::optional<channel_event> next();
  /// Notes that a parcel's callback has returned. Call it once for each parcel of next(), and in
  /// their order for each lane. The sender gets credit once half a window or half of bytes_max is
  /// taken, or at the next tick. It reads no other part of which.parcel than the sequence.
  void taken(const channel_event& which, channel_effects& out);

  const std::vector<channel_end>& ends() const { return ends_; }
  /// Returns the counts of a port.
  port_counts counts(std::size_t end, time_point now) const;
  /// Returns the number of events in the inbox.
  std::size_t waiting() const { return inbox_.size(); }

private:
  struct link_state {
    std::optional<lane_key> lane; ///< Absent until channel_open names it.
    member_id from = {};          ///< Of an accepted link.
    time_point since{0};          ///< When it was accepted.
  };

  bool sends(const lane_key& key) const { return ends_[key.end].sends; }
  const member_id& peer_of(const lane_key& key) const { return ends_[key.end].peers[key.peer]; }
  void push(channel_event what, channel_effects& out);
  void withdraw(const lane_key& key, channel_event::kind what);
  void drop(lane_link link, channel_effects& out);
  void end_link(lane_link link, const link_state& what, time_point now, channel_effects& out);

  // The sending side.
  void list(const lane_key& key, sending_lane& lane, const member_address* found, time_point now,
            channel_effects& out);
  void connect_if_due(const lane_key& key, sending_lane& lane, time_point now,
                      channel_effects& out);
  bool has_room(const lane_key& key, const sending_lane& lane) const;
  void hear_taken(const lane_key& key, lane_link link, const parcels_taken& what, time_point now,
                  channel_effects& out);
  static void begin_wait(sending_lane& lane, time_point now);
  void begin_sending(const lane_key& key, sending_lane& lane, time_point now, channel_effects& out);
  void end_sending(const lane_key& key, sending_lane& lane, time_point now, channel_effects& out);
  static void stop_waiting(sending_lane& lane, time_point now);
  bool owes_writable(const lane_key& key, sending_lane& lane);
  void tell_of_wait(const lane_key& key, sending_lane& lane, time_point now, channel_effects& out);
  static void end_told_wait(const lane_key& key, sending_lane& lane, channel_effects& out);

  // The receiving side.
  void hear_open(lane_link link, link_state& of, const channel_open& what, channel_effects& out);
  result<lane_key> find_lane(const member_id& from, const channel_open& what) const;
  void accept(const lane_key& key, receiving_lane& lane, channel_effects& out);
  void hear_parcel(const lane_key& key, lane_link link, parcel_message what, time_point now,
                   channel_effects& out);
  static void tell_taken(receiving_lane::session& present, channel_effects& out);
  void end_receiving(const lane_key& key, receiving_lane& lane, channel_effects& out);

  const member_id self_;
  const std::vector<channel_end> ends_;
  std::map<lane_key, sending_lane> senders_;
  std::map<lane_key, receiving_lane> receivers_;
  std::map<lane_link, link_state> links_;
  std::deque<channel_event> inbox_;
  std::uint64_t links_made_ = 0, sessions_ = 0;
};

} // namespace troupe
