// Parts of the simulated channels that several of its files need.
#pragma once

#include "cli/sim/channel_world.hpp"

#include <cassert>
#include <map>
#include <memory>
#include <optional>

namespace troupe::sim {

/// Carries out the effects of one member's hub.
class channel_world::shell final : public channel_effects {
public:
  shell(channel_world& in, member& of) : world_(&in), member_(&of) {}

  void connect(lane_link link, const member_address& to) override;
  void send(lane_link link, channel_message what) override;
  void refuse(lane_link link, const failure& why) override;
  void close(lane_link link) override;
  void wake() override;
  void waits(std::size_t end, std::uint32_t peer, const std::string& text) override;
  void fail(const failure& why) override;

private:
  channel_world* world_;
  member* member_;
};

/// A lane as the program of one member sees it.
struct channel_world::program_lane {
  std::size_t end = 0;
  std::uint32_t peer = 0;
  std::uint32_t channel = 0, other = 0; ///< Indices of the channel and of the other member.
  bool sends = false;
  std::uint32_t window = 1;
  std::uint64_t session = 0, last_session = 0; ///< Of the hub; 0: none at present.
  std::uint64_t parcels = 0, bytes = 0;        ///< Sent or taken.
  bool is_refused = false;                     ///< send() returned false, and no `writable` came.
  bool is_wait_told = false;
  std::uint64_t quota = 0; ///< Parcels to send in the quiet.
  bool begins_quota = false;
  // Of a receiver: the session that its parcels name, and the place of the last one.
  std::optional<session_name> from = {};
  std::uint64_t place = 0;
};

struct channel_world::member {
  member_id id = {};
  bool is_alive = false;
  std::unique_ptr<shell> effects = {};
  std::unique_ptr<channel_hub> hub = {};
  std::map<lane_link, std::size_t> links = {};
  std::vector<program_lane> lanes = {};
  bool is_awake = false;
  std::optional<channel_event> in_hand = {}; ///< A parcel whose callback runs.
  std::uint64_t in_hand_bytes = 0;
  time_point paused_until{0};
  std::uint64_t step_us_max = 1000;

  program_lane& lane(std::size_t end, std::uint32_t peer) {
    for (auto& each : lanes)
      if (each.end == end && each.peer == peer)
        return each;
    throw violation("events: an event of a lane that the member does not have");
  }
};

/// A connection. Messages keep their order in each direction.
struct channel_world::link {
  struct end {
    std::uint32_t member = 0;
    incarnation_id incarnation = {};
    lane_link as = {};
    bool hears = false;      ///< Messages and closed() still come.
    bool is_dropped = false; ///< The hub closed it.
    time_point last{0};      ///< Arrival of the last message.
  };
  end ends[2];            ///< The one that connected, and the one that accepted.
  bool carries = true;    ///< Messages that are sent now arrive.
  bool is_faulty = false; ///< A fault ends it, so its session may end.
  std::uint64_t delay_us_max = 1000;
  std::optional<session_name> session = {}; ///< That it was opened for.
};

} // namespace troupe::sim
