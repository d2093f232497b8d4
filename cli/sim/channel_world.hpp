// Simulates members of a program that send parcels to each other over channels, in one thread and
// virtual time. The deciders (channel_hub) are the real ones, shells and programs are models.
// Links, members and the coordinator's lists fail as a seed says.
#pragma once

#include "actors/protocol/channel/channel_hub.hpp"
#include "cli/sim/world.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::sim {

/// Counts the events of a history, so that a run can show that it tested something.
struct channel_tally {
  std::uint64_t events = 0, sessions = 0, parcels = 0, refused = 0, writable = 0, lost = 0;
  std::uint64_t missing = 0, kills = 0, broken = 0, messages_lost = 0, stalls = 0, pauses = 0,
                slow_hosts = 0;
  std::uint64_t failed_connects = 0, old_lists = 0, partial_lists = 0, silences = 0;
  std::uint64_t heard_late = 0, late_opens = 0, waits = 0;
};

/// One history: faults for a time, then quiet, in which all lanes have to join and to carry more
/// parcels than their windows.
class channel_world : public world {
public:
  using tally = channel_tally;
  static constexpr std::string_view name = "channel";
  /// The shapes of a join.
  static constexpr std::array<std::string_view, 3> kinds{"spread", "one to one", "circle"};
  static const std::vector<minimum<tally>> minima;

  /// `no_faults`: without faults.
  explicit channel_world(std::uint64_t seed, bool no_faults = false, trace_function trace = {});
  ~channel_world();

  /// Runs the history. Throws violation.
  void run();
  const tally& counted() const { return tally_; }
  std::size_t kind() const { return shape_; }

private:
  class shell;
  struct member;
  struct link;
  struct program_lane;

  struct channel_plan {
    std::string title;
    std::uint32_t window = 1;
    std::uint64_t bytes_max = 1; ///< Of parcels under way on a lane.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> lanes; ///< Sender, receiver.
  };
  /// A session as its sender numbers it.
  struct session_name {
    std::uint64_t sender = 0; ///< Incarnation.
    std::uint32_t channel = 0, to = 0;
    std::uint64_t session = 0;
    auto operator<=>(const session_name&) const = default;
  };
  struct session_record {
    std::size_t link = 0;
    std::uint64_t sent = 0, taken = 0;
    std::uint64_t bytes_open = 0; ///< Sent and not taken.
    std::uint64_t known = 0; ///< Taken, as the sender's hub was told while the session lasted.
  };
  /// The head of a parcel.
  struct parcel_name {
    session_name session;
    std::uint32_t from = 0;
    std::uint64_t place = 0;  ///< In its session, from 1 on.
    std::uint64_t number = 0; ///< Of its lane and sender, over all sessions, from 1 on.
  };

  // Members.
  void make_channels();
  void make_spread(bool back);
  void make_pairs(bool back);
  void make_circle(bool back);
  std::vector<channel_end> ends_of(std::uint32_t index) const;
  void start_member(std::uint32_t index);
  void kill_member(member& victim, bool is_quick);
  void slow_host(member& which);
  void tick_members();
  void program_step(member& who);
  void handle(member& who, channel_event event);
  void fill(member& who, program_lane& lane, std::uint64_t most);
  bool try_send(member& who, program_lane& lane);
  void finish_taking(member& who);

  // Links.
  void connect(member& from, lane_link as, const member_address& to);
  void carry(member& from, lane_link on, channel_message what);
  void deliver(std::size_t number, bool to_acceptor, channel_message what);
  void post_on(std::size_t number, bool to_acceptor, std::function<void()> arrive);
  void excuse_late_open(const link& late);
  void close_end(member& by, lane_link which);
  void break_link(link& which);
  void hear_closed(std::size_t number, bool acceptor, time_point when);
  member* end_of(const link& which, bool acceptor);
  void break_a_link();
  void stall_a_link();

  // The coordinator.
  void publish();
  void give_list(member& to);

  void inject_faults();
  void heal();

  // -- the oracle: channel_checks.cpp --
  void check_send(const session_record& session, const program_lane& lane) const;
  void check_joined(const member& who, program_lane& lane, const channel_event& event);
  void check_parcel(const member& who, program_lane& lane, const channel_event& event);
  void check_lost(const member& who, program_lane& lane, const channel_event& event);
  void check_writable(const member& who, program_lane& lane);
  void check_inbox(const member& who) const;
  void check_counts(const member& who) const;
  void check_end();
  bool all_is_well() const;
  session_name session_of(const member& who, const program_lane& lane) const;
  std::string title_of(const member& who, const program_lane& lane) const;

  std::size_t shape_;
  bool polls_;       ///< Programs try to send often; else after events alone.
  bool is_careless_; ///< Shells deliver messages of links that their hub has closed.
  double kill_rate_, break_rate_, stall_rate_, pause_rate_, slow_rate_, old_list_, partial_list_,
    silence_rate_, connect_failure_;
  std::uint64_t take_us_max_;
  std::uint64_t incarnations_ = 0;

  std::vector<channel_plan> channels_;
  std::vector<std::unique_ptr<member>> members_;
  std::vector<std::unique_ptr<link>> links_;
  std::vector<std::vector<member_address>> lists_; ///< All that were published.
  time_point silent_until_{0};

  std::map<session_name, session_record> sessions_;
  /// The number of the last parcel that was received, by sender and lane.
  std::map<session_name, std::uint64_t> last_numbers_;
  tally tally_;
};

} // namespace troupe::sim
