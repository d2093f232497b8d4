// Mixes with one neighbour after each step (AD-PSGD, Lian et al. 2018, algorithm 1), in pairs that
// are made atomically.
#pragma once

#include "actors/protocol/gossip/mixer.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe {

/// A peer takes part in one exchange at a time: it has asked, or it is taken. If two peers ask each
/// other, the one with the larger number answers, and the other one says busy. An exchange that was
/// accepted lasts as long as its values need, or until the neighbours part.
///
/// A peer without work says busy, so that its copy is final at the end of the job.
///
/// A change stays with its sender until the receiver has said done. It is sent again in the next
/// meeting with the same incarnation, and dropped when another one is met.
class pairwise_mixer final : public mixer {
public:
  explicit pairwise_mixer(mixer_setup setup);

  void asked(time_point now, mixer_effects& out) override;
  void pushed(std::uint64_t batch, bool goes_on, time_point now, mixer_effects& out) override;
  bool is_mixing() const override { return own_ || taken_; }

private:
  struct edge_state {
    // Exchanges for which the neighbour asked, by its numbers.
    std::uint64_t asked = 0, added = 0;
    std::optional<std::uint64_t> kept = {}; ///< Number of the exchange whose change is kept.
  };
  struct exchange {
    std::uint32_t neighbour = 0;
    std::uint64_t number = 0;
    time_point since{0};
    bool is_accepted = false; ///< The neighbour has told that an answer comes.

    bool is(std::uint32_t which, std::uint64_t of) const {
      return neighbour == which && number == of;
    }
  };

  void parted(std::uint32_t neighbour, mixer_effects& out) override;
  void greeted(std::uint32_t neighbour, std::uint64_t clock) override;
  void met(std::uint32_t neighbour, bool is_same, mixer_effects& out) override;
  result<void> said(std::uint32_t neighbour, const peer_word& what, time_point now,
                    mixer_effects& out) override;
  void go_on(time_point now, mixer_effects& out) override;

  result<void> hear_ask(std::uint32_t neighbour, const peer_word& what, time_point now,
                        mixer_effects& out);
  result<void> hear_accept(std::uint32_t neighbour, const peer_word& what, mixer_effects& out);
  result<void> hear_answer(std::uint32_t neighbour, const peer_word& what, mixer_effects& out);
  result<void> hear_change(std::uint32_t neighbour, const peer_word& what, mixer_effects& out);
  result<void> hear_done(std::uint32_t neighbour, const peer_word& what, mixer_effects& out);
  std::optional<std::uint32_t> draw(std::uint64_t batch) const;
  void begin(std::uint64_t batch, time_point now, mixer_effects& out);

  std::vector<edge_state> edges_;
  std::uint64_t exchanges_ = 0;      ///< Number of the last one that began here.
  std::optional<exchange> own_;      ///< Asked, and neither answered nor refused.
  std::optional<exchange> taken_;    ///< Answered, and no change came.
  std::optional<std::uint64_t> due_; ///< The batch whose exchange has to begin.
  bool is_idle_ = true;              ///< The worker has no batch: the values stay as they are.
};

} // namespace troupe
