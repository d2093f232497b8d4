// Carries out the effects of a state machine for the actor that holds it.
#pragma once

#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// Keeps the memory of the list of effects from one event to the next.
template <class Effect>
class effect_runner {
public:
  using effects_type = std::vector<Effect>;

  /// Calls `event(effects)`, then `run(effect, effects)` for each effect in order. Running an
  /// effect may append more of them, or begin another event.
  template <class Event, class Run>
  void decide(Event&& event, Run&& run) {
    effects_type effects = std::exchange(spare_, {});
    event(effects);
    for (std::size_t i = 0; i < effects.size(); ++i) {
      auto effect = std::move(effects[i]);
      std::visit([&](auto& x) { run(x, effects); }, effect);
    }
    effects.clear();
    if (effects.capacity() <= kept_max)
      spare_ = std::move(effects);
  }

private:
  static constexpr std::size_t kept_max = 1024;

  effects_type spare_;
};

} // namespace troupe
