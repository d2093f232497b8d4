// Is the base of simulated worlds whose processes talk over lanes, one in each direction. Processes
// die or stand still, and lanes fail. The two ends of a lane hear of that at different times.
#pragma once

#include "cli/sim/world.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <vector>

namespace troupe::sim {

/// Counts the faults of lanes and of their processes.
struct lane_tally {
  std::uint64_t broken = 0, renewed = 0, failed_connects = 0, words_lost = 0, pauses = 0;
};

class lane_world : public world {
protected:
  using world::world;
  ~lane_world() = default;

  /// A process, as its lanes know it.
  struct end {
    std::uint32_t place = 0;
    std::uint64_t incarnation = 0;
    bool is_alive = false;
    std::set<std::uint32_t> hears, reaches; ///< Neighbours whose lane from, or to, them is joined.
    std::deque<std::function<void()>> inbox;
    time_point paused_until{0};

    bool is_joined(std::uint32_t other) const {
      return hears.contains(other) && reaches.contains(other);
    }
  };
  /// A lane from a process to its neighbour, and its present session.
  struct lane {
    std::uint32_t from = 0, to = 0; ///< Places.
    std::uint64_t session = 0;      ///< The newest one.
    std::uint64_t receives = 0;     ///< Session of the receiver; 0: none.
    std::uint64_t from_incarnation = 0, to_incarnation = 0;
    bool is_opening = false, sends = false; ///< The sender's end.
    bool carries = false;                   ///< Words that are sent now arrive.
    std::uint64_t dropped = 0;              ///< Words of sessions up to this one do not arrive.
    std::uint64_t delay_us_max = 1000;
    time_point last{0}; ///< Arrival of the last word.
  };
  struct lane_faults {
    double break_rate = 0, renew_rate = 0; ///< For each second, over all lanes.
    double connect_failure = 0;            ///< Probability.
    std::uint64_t delay_us_max = 1000;     ///< Of a word.
  };

  // -- a world --
  /// Returns the newest process of a place.
  virtual end& end_at(std::uint32_t where) = 0;
  /// Is called when both lanes of a neighbour are joined.
  virtual void joined(end& at, std::uint32_t neighbour) = 0;
  /// Is called when one lane to or from a neighbour is lost.
  virtual void lost(end& at, std::uint32_t neighbour) = 0;
  /// Is called when a lane breaks, or is renewed at one end.
  virtual void failed(const lane& /*which*/) {}

  /// Adds a lane, before the first process starts.
  void add_lane(std::uint32_t from, std::uint32_t to);
  void set_faults(const lane_faults& what) { faults_ = what; }
  const lane_tally& lanes_counted() const { return tally_; }

  // -- processes --
  /// Lets something happen at a process, unless it has died. The call waits while the
  /// process stands still.
  void post_to(const end& who, time_point when, std::function<void()> what);
  void pause(end& who, milliseconds time);
  /// Breaks the lanes of a process that has died. Others hear of it soon, or only after seconds if
  /// its host is gone.
  void break_lanes_of(const end& victim, bool is_quick);

  // -- lanes --
  /// Connects lanes without a session, and some lanes to a successor.
  void connect_lanes();
  /// Breaks lanes, or ends a session for one end alone, at the rates of this world.
  void fail_lanes(double seconds);
  /// Sends a word to a neighbour, in whose process `arrive` is called unless the word is lost.
  void send(const end& from, std::uint32_t to, std::function<void()> arrive);

private:
  void drain(end& who);
  void connect(lane& which);
  void end_sending(lane& which);
  void set_lane(const lane& which, bool at_sender, bool is_up);
  void break_lane(lane& which, milliseconds sender_hears, milliseconds receiver_hears);
  void renew_lane(const lane& which, bool at_sender);

  lane_faults faults_;
  std::vector<lane> lanes_;
  lane_tally tally_;
};

} // namespace troupe::sim
