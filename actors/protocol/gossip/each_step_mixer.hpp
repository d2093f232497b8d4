// Mixes with all neighbours in each step, by clocks (D-PSGD, Lian et al. 2017, algorithm 1).
#pragma once

#include "actors/protocol/gossip/mixer.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe {

/// A peer leaves a clock when each neighbour has told of that clock or a later one, and its worker
/// has brought a gradient. It needs no gradient if its worker has no batch and a neighbour is
/// ahead, or if a neighbour is ahead by more than one clock. The peer enters the largest clock that
/// it knows.
///
/// An edge counts at a clock if both peers sent their values of that clock in one meeting.
class each_step_mixer final : public mixer {
public:
  explicit each_step_mixer(mixer_setup setup);

  void asked(time_point now, mixer_effects& out) override;
  void pushed(std::uint64_t batch, bool goes_on, time_point now, mixer_effects& out) override;
  bool is_mixing() const override { return false; }

private:
  struct kept_values {
    std::uint64_t clock = 0;
    std::uint32_t degree = 0;
  };
  struct edge_state {
    std::optional<std::uint64_t> at = {};  ///< Clock of the neighbour, as told in this meeting.
    bool is_sent = false;                  ///< The values of this clock, in this meeting.
    std::optional<kept_values> kept = {};  ///< Of this clock. Stays when the meeting ends.
    std::optional<kept_values> ahead = {}; ///< Of a later clock.
  };
  struct open_push {
    bool goes_on = false;
  };

  void parted(std::uint32_t neighbour, mixer_effects& out) override;
  void greeted(std::uint32_t neighbour, std::uint64_t clock) override;
  void met(std::uint32_t neighbour, bool is_same, mixer_effects& out) override;
  result<void> said(std::uint32_t neighbour, const peer_word& what, time_point now,
                    mixer_effects& out) override;
  void go_on(time_point now, mixer_effects& out) override;

  bool is_settled() const;
  bool may_turn() const;
  std::uint64_t largest_clock() const;
  void turn(mixer_effects& out);
  void mix_kept(mixer_effects& out) const;
  void enter(std::uint64_t clock, mixer_effects& out);

  std::vector<edge_state> edges_;
  std::uint32_t degree_ = 0;  ///< Neighbours to which the values of this clock were sent.
  bool is_computing_ = false; ///< The worker has values, and no gradient yet.
  std::optional<open_push> push_;
};

} // namespace troupe
