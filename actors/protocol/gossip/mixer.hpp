// Decides when one peer of a gossip job sends, waits, mixes and steps. A plain state machine: words
// of neighbours, the worker's requests and times in, effects out. It knows no values.
#pragma once

#include "actors/protocol/gossip/mixing.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// The head of a parcel between two peers.
struct peer_word {
  enum class kind : std::uint8_t {
    greet,   ///< Begins a meeting: the sender's clock, and a `number` and `echo` of meetings.
    values,  ///< each_step. Brings the values with which the sender entered `clock`.
    ask,     ///< pairwise. Asks for values.
    accept,  ///< pairwise. Follows `ask` at once: an `answer` comes.
    answer,  ///< pairwise. Brings values. Its sender is taken until `change` or `release`.
    busy,    ///< pairwise. Refuses `ask`.
    change,  ///< pairwise. Brings what the receiver has to add.
    release, ///< pairwise. Follows an `accept` that came too late: no `change` comes.
    done,    ///< pairwise. The change is added.
  };
  kind what = kind::greet;
  std::uint32_t degree = 0; ///< Of values: neighbours to which the sender sent values of `clock`.
  std::uint64_t clock = 0;  ///< Of greet and values: that in which the sender is.
  std::uint64_t number = 0; ///< Of a meeting, or of an exchange; grows with each.
  std::uint64_t echo = 0;   ///< Of greet: the receiver's number; 0: not known yet.
  std::uint64_t incarnation = 0; ///< Of greet: the sender's.

  bool operator==(const peer_word&) const = default;
};

/// Returns the enumerator's own name.
const char* to_string(peer_word::kind which);

/// A neighbour's part of a weighted mean.
struct peer_share {
  std::uint32_t neighbour = 0;
  double weight = 0;

  bool operator==(const peer_share&) const = default;
};

/// Carries out what a mixer decides. Called within calls of the mixer; must not call it.
class mixer_effects {
public:
  virtual ~mixer_effects() = default;
  /// Sends a word on the lane to a neighbour. A word of the kinds `values` and `answer` goes with
  /// the present values, one of the kind `change` with the change that is kept for the neighbour.
  virtual void send(std::uint32_t neighbour, const peer_word& what) = 0;
  /// Sets own values = `own` * own values + sum of weight * values kept for the neighbour and
  /// `clock`. Drops what is kept for `clock`. `own` and the weights add up to one.
  virtual void mix(std::uint64_t clock, double own, std::span<const peer_share> others) = 0;
  /// Keeps the values that came with the word in hand.
  virtual void keep_values(std::uint32_t neighbour, std::uint64_t clock) = 0;
  /// Drops kept values.
  virtual void forget_values(std::uint32_t neighbour, std::uint64_t clock) = 0;
  /// Adds d = (theirs - own) / 2 to the own values; theirs came with the word in hand. Keeps -d as
  /// the neighbour's change.
  virtual void halve(std::uint32_t neighbour) = 0;
  /// Drops the neighbour's change.
  virtual void forget_change(std::uint32_t neighbour) = 0;
  /// Adds the change that came with the word in hand to the own values.
  virtual void add_change() = 0;
  /// Takes the optimiser's step with the gradient that was pushed last.
  virtual void step() = 0;
  /// Answers the worker's request. If it asks for values, it gets the present ones.
  virtual void answer() = 0;
  /// Says a line to a person.
  virtual void say(const std::string& line) = 0;
};

/// Describes the peer of a mixer.
struct mixer_setup {
  mixing kind = mixing::each_step;
  std::uint32_t self = 0;
  std::vector<std::uint32_t> neighbours; ///< Peers, ascending, as neighbour_graph has them.
  std::uint64_t incarnation = 0;         ///< Of this peer; differs for each start.
  std::uint64_t seed = 0;                ///< With the batch it draws the neighbour of `pairwise`.
};

/// A worker waits for an exchange, and a peer for the word that follows `ask`, for this time.
constexpr std::chrono::milliseconds mixing_patience{100};

/// A neighbour is named by its place in `neighbours`. Two neighbours agree on a meeting before
/// other words count: each greets with a number of its own, and echoes the other's. So both begin
/// anew when either of them lost one of the two lanes, though the other may not have noticed.
///
/// Errors: heard() fails for a word that cannot be, which then has no effect.
/// Determinism: the same calls give the same effects.
/// Capacity: the shell keeps the values of two clocks and one change for each neighbour.
/// Invariants:
/// (1) own weight and the others of mix() add up to one, and both ends of an edge use one weight at
///     a clock. Held by: check_mix() in cli/sim/gossip/gossip_checks.cpp.
/// (2) mix() takes values of the clock in which this peer is. Held by: check_mix() in
///     cli/sim/gossip/gossip_checks.cpp.
/// (3) a change is added once, by the incarnation whose values it is half the distance to. Held by:
///     check_change() in cli/sim/gossip/gossip_checks.cpp.
/// (4) each push is followed by one step() and one answer(). Held by: check_step(), check_answer()
///     in cli/sim/gossip/gossip_checks.cpp.
/// (5) clocks grow by steps alone: none is above the number of all steps. Held by: check_clock() in
///     cli/sim/gossip/gossip_checks.cpp.
class mixer {
public:
  virtual ~mixer() = default;

  // -- events of the shell --
  /// Both lanes of a neighbour are joined. Call lost() between two calls.
  void joined(std::uint32_t neighbour, time_point now, mixer_effects& out);
  /// A lane of a neighbour is lost. The other lane may be joined or not.
  void lost(std::uint32_t neighbour, time_point now, mixer_effects& out);
  /// A neighbour's word came, perhaps before joined().
  result<void> heard(std::uint32_t neighbour, const peer_word& what, time_point now,
                     mixer_effects& out);
  /// Ends what took too long. Call it at least each 20 ms.
  void tick(time_point now, mixer_effects& out);

  // -- requests of the worker; one at a time: the next one comes after answer() --
  /// The worker asks for values, to compute a batch. If it had values and brings no gradient of
  /// them, it has given that batch up.
  virtual void asked(time_point now, mixer_effects& out) = 0;
  /// The worker brings the gradient of a batch. `goes_on`: it asks for the values of the next one.
  virtual void pushed(std::uint64_t batch, bool goes_on, time_point now, mixer_effects& out) = 0;

  /// Returns the clock in which this peer is; `pairwise` has none.
  std::uint64_t clock() const { return clock_; }
  /// Returns whether words go to and from the neighbour.
  bool is_met(std::uint32_t neighbour) const { return edges_[neighbour].is_met; }
  /// Returns whether an exchange is open, which will change the values of this peer.
  virtual bool is_mixing() const = 0;
  /// Returns the number of neighbours that are met.
  std::uint32_t living() const;

protected:
  explicit mixer(mixer_setup setup);

  const mixer_setup& setup() const { return setup_; }
  std::uint32_t neighbours() const { return static_cast<std::uint32_t>(edges_.size()); }
  /// Returns whether words that are sent now belong to a meeting that the neighbour knows, or will
  /// know before they come. Its own words may still be those of an earlier meeting.
  bool is_greeted(std::uint32_t neighbour) const;
  failure cannot_be(std::uint32_t neighbour, const peer_word& what, const std::string& why) const;

  std::uint64_t clock_ = 0;

private:
  struct edge_state {
    bool is_joined = false;
    bool is_met = false;               ///< Words that come belong to this meeting.
    std::uint64_t number = 0;          ///< Of the own meeting; grows with each joined().
    std::uint64_t heard = 0;           ///< Number of the neighbour's meeting; 0: none.
    std::uint64_t incarnation = 0;     ///< As the neighbour greeted last; 0: never.
    std::uint64_t met_incarnation = 0; ///< As the neighbour was met last; 0: never.
  };

  void greet(std::uint32_t neighbour, mixer_effects& out);
  result<void> hear_greet(std::uint32_t neighbour, const peer_word& what, mixer_effects& out);
  void part(std::uint32_t neighbour, mixer_effects& out);

  // -- what the kinds do --
  /// Ends the meeting with a neighbour.
  virtual void parted(std::uint32_t neighbour, mixer_effects& out) = 0;
  /// Notes the clock in which a neighbour is, as it greets.
  virtual void greeted(std::uint32_t neighbour, std::uint64_t clock) = 0;
  /// Begins to talk to a neighbour. `is_same`: it is the incarnation that was met last.
  virtual void met(std::uint32_t neighbour, bool is_same, mixer_effects& out) = 0;
  /// Takes a word of a neighbour that is met, other than a greet.
  virtual result<void> said(std::uint32_t neighbour, const peer_word& what, time_point now,
                            mixer_effects& out) = 0;
  /// Does what has become possible.
  virtual void go_on(time_point now, mixer_effects& out) = 0;

  const mixer_setup setup_;
  std::vector<edge_state> edges_;
};

/// Makes the mixer of a peer.
std::unique_ptr<mixer> make_mixer(mixer_setup setup);

} // namespace troupe
