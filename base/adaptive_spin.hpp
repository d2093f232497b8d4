// How long a thread looks again and again for what it waits for before it sleeps.
#pragma once

#include <algorithm>
#include <chrono>

namespace troupe::detail {

/// To be woken costs 25 to 50 us, most of a short round trip. So after a short wait the next one
/// begins with looking. Where that was in vain it is left out 2, 4, ... 64 times: who looks takes
/// time from others, on some processors even from the core beside it.
class adaptive_spin {
public:
  /// The most that one wait spends on it: as long as the other side takes to be woken.
  static constexpr std::chrono::nanoseconds max = std::chrono::microseconds{50};
  /// A wait up to this, asleep, would have been a spin had the other side not slept either.
  static constexpr std::chrono::nanoseconds short_wait = 2 * max;

  std::chrono::nanoseconds get() const { return now_; }

  /// The last wait took so long, spinning and sleeping.
  void waited(std::chrono::nanoseconds time) {
    const bool spun = now_ > std::chrono::nanoseconds::zero();
    if (spun && time > now_) {
      pause_ = std::min(2 * pause_, pause_max);
      left_out_ = 0;
      now_ = std::chrono::nanoseconds::zero();
    } else if (spun) {
      pause_ = 1;
    } else if (time <= short_wait && ++left_out_ >= pause_) {
      now_ = max;
    }
  }

private:
  static constexpr int pause_max = 64;

  std::chrono::nanoseconds now_{0};
  int pause_ = 1;    ///< Short waits before the next try.
  int left_out_ = 0; ///< Of these.
};

} // namespace troupe::detail
