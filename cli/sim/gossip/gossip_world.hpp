// Simulates peers of a gossip job, in one thread and virtual time. The deciders (mixer) are the
// real ones, lanes and workers are models, and a copy is one number. Lanes and peers fail as a seed
// says.
#pragma once

#include "actors/protocol/gossip/mixer.hpp"
#include "actors/protocol/gossip/neighbour_graph.hpp"
#include "cli/sim/lanes/lane_world.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::sim {

/// Counts the events of a history, so that a run can show that it tested something.
struct gossip_tally : lane_tally {
  std::uint64_t events = 0, steps = 0, mixes = 0, halves = 0, rests = 0;
  std::uint64_t meetings = 0, kills = 0;
  std::uint64_t alone = 0, jumps = 0, busy = 0, released = 0, sent_again = 0;
  std::uint64_t changes_lost = 0, late_changes = 0, unmatched = 0;
};

/// One history: faults for a time, then quiet, in which the copies have to approach each other.
class gossip_world final : public lane_world {
public:
  using tally = gossip_tally;
  static constexpr std::string_view name = "gossip";
  static constexpr std::array<std::string_view, 2> kinds{"each_step", "pairwise"};
  static const std::vector<minimum<tally>> minima;

  /// `no_faults`: without faults.
  explicit gossip_world(std::uint64_t seed, bool no_faults = false, trace_function trace = {});
  ~gossip_world();

  /// Runs the history. Throws violation.
  void run();
  const tally& counted() const { return tally_; }
  std::size_t kind() const { return how_ == mixing::each_step ? 0 : 1; }

private:
  class shell;
  struct peer;
  struct parcel;

  /// One mixing change between two incarnations.
  struct change_name {
    std::uint64_t from = 0, to = 0, number = 0;
    auto operator<=>(const change_name&) const = default;
  };
  /// Describes a mix of one end of an edge, in each_step.
  struct transfer {
    std::uint64_t taker = 0; ///< Incarnation.
    double weight = 0, own = 0, theirs = 0;
  };
  struct edge_clock {
    std::uint64_t one = 0, other = 0; ///< Incarnations, the smaller one first.
    std::uint64_t clock = 0;
    auto operator<=>(const edge_clock&) const = default;
  };

  // Peers and workers: gossip_world.cpp.
  neighbour_graph make_graph();
  void start_peer(std::uint32_t index);
  void kill_peer(peer& victim, bool is_quick);
  double collected_mean(std::uint32_t left_out) const;
  void post_to(const peer& who, time_point when, std::function<void(peer&)> what);
  void begin_work(peer& who);
  void ask(peer& who);
  void work(peer& who);
  void idle_for_a_while(peer& who);
  void answered(peer& who);
  void inject_faults();
  void heal();
  bool is_over();

  // Lanes: gossip_lanes.cpp.
  end& end_at(std::uint32_t where) override;
  void joined(end& at, std::uint32_t neighbour) override;
  void lost(end& at, std::uint32_t neighbour) override;
  void failed(const lane& which) override;
  std::uint32_t edge_of(std::uint32_t at, std::uint32_t neighbour) const;
  void carry(peer& from, std::uint32_t neighbour, const peer_word& what);
  void deliver(peer& to, std::uint32_t from, const parcel& what);

  // -- the oracle: gossip_checks.cpp --
  void check_start(const peer& who) const;
  void check_mix(peer& who, std::uint64_t clock, double own, std::span<const peer_share> others);
  void check_change(peer& who);
  void check_step(const peer& who) const;
  void check_answer(const peer& who) const;
  void check_waits() const;
  void check_clock(const peer& who) const;
  void check_hull(const peer& who) const;
  void check_end();
  void check_transfers();
  double spread() const;
  void check_sum() const;

  mixing how_;
  neighbour_graph graph_;
  double kill_rate_, pause_rate_, idle_rate_;
  std::uint64_t seed_;
  std::uint64_t incarnations_ = 0, batches_ = 0, steps_ = 0;
  bool is_stopping_ = false; ///< Workers begin no batch.
  time_point stopped_at_{0};
  double spread_at_quiet_ = 0;

  std::vector<std::unique_ptr<peer>> peers_;
  std::vector<bool> is_dead_;   ///< By incarnation.
  std::vector<bool> is_broken_; ///< By incarnation: one of its lanes broke.

  double given_ = 0;        ///< First values of all incarnations, and all gradients.
  double left_ = 0;         ///< Last copies of the dead ones.
  double lowest_, highest_; ///< That a copy may have.
  std::map<edge_clock, transfer> transfers_; ///< Without that of the other end.
  double unmatched_ = 0;                     ///< Sum of all transfers_.
  std::map<change_name, double> changes_;    ///< That are not added yet.
  tally tally_;
};

} // namespace troupe::sim
