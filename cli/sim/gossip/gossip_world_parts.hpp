// Parts of the simulated gossip job that several of its files need.
#pragma once

#include "cli/sim/gossip/gossip_world.hpp"

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::sim {

constexpr milliseconds gossip_tick_interval = 20ms;

/// Holds a word with its values or its change.
struct gossip_world::parcel {
  peer_word word;
  double value = 0;
  change_name change = {}; ///< Of a change.
};

/// Carries out the effects of one peer's mixer.
class gossip_world::shell final : public mixer_effects {
public:
  shell(gossip_world& in, peer& of) : world_(&in), peer_(&of) {}

  void send(std::uint32_t neighbour, const peer_word& what) override;
  void mix(std::uint64_t clock, double own, std::span<const peer_share> others) override;
  void keep_values(std::uint32_t neighbour, std::uint64_t clock) override;
  void forget_values(std::uint32_t neighbour, std::uint64_t clock) override;
  void halve(std::uint32_t neighbour) override;
  void forget_change(std::uint32_t neighbour) override;
  void add_change() override;
  void step() override;
  void answer() override;
  void say(const std::string& line) override;

private:
  gossip_world* world_;
  peer* peer_;
};

struct gossip_world::peer : end {
  struct kept_change {
    double value = 0;
    change_name name = {};
  };
  /// An answer that has not been changed.
  struct answered_ask {
    std::uint64_t mixes = 0; ///< Of this peer, when it answered.
    time_point at{0};
    bool is_open = true; ///< The meeting goes on.
  };
  struct kept_copy {
    double value = 0;
    std::uint64_t incarnation = 0; ///< Whose copy it is.
  };
  enum class worker_state : std::uint8_t { idle, asks, computes, pushes };

  std::unique_ptr<shell> effects = {};
  std::unique_ptr<mixer> mix = {};
  double copy = 0;
  std::map<std::pair<std::uint64_t, std::uint32_t>, kept_copy> kept = {}; ///< Clock, neighbour.
  std::map<std::uint32_t, kept_change> changes = {};
  std::vector<std::uint64_t> met = {}; ///< Incarnation of the neighbour, as it greeted.
  std::uint64_t mixes = 0;             ///< Exchanges that changed the copy, but late ones.
  std::map<change_name, answered_ask> answers = {};
  /// Notes that the meeting with a neighbour ends.
  void end_answers(std::uint32_t neighbour) {
    for (auto& [of, answer] : answers)
      answer.is_open = answer.is_open && of.from != met[neighbour];
  }
  const parcel* in_hand = nullptr;
  std::uint32_t in_hand_from = 0;

  worker_state worker = worker_state::idle;
  bool goes_on = false;
  double gradient = 0;
  std::uint64_t open_steps = 0; ///< Pushes without a step.
  time_point pushed_at{0};
  std::uint64_t step_us = 0; ///< Longest step of the worker.
};

} // namespace troupe::sim
