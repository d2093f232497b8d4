// Chooses how long a thread polls for an event before it sleeps.
#pragma once

#include <algorithm>
#include <chrono>

namespace troupe::detail {

/// Waking a sleeping thread costs 25 to 50 us, most of a short round trip. So after a short wait
/// the next one begins with polling. After a poll in vain, the next 2, 4, ... 64 short waits skip
/// it. A polling thread takes time from others, on some processors even from the neighbouring core.
class adaptive_spin {
public:
  /// The longest poll of one wait: the time that the other side takes to be woken.
  static constexpr std::chrono::nanoseconds max = std::chrono::microseconds{50};
  /// A sleeping wait up to this would have been a poll if the other side had not slept either.
  static constexpr std::chrono::nanoseconds short_wait = 2 * max;

  std::chrono::nanoseconds get() const { return now_; }

  /// Takes the duration of the last wait, polling and sleeping.
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
  int pause_ = 1;    ///< Short waits before the next poll.
  int left_out_ = 0; ///< Short waits since the last poll.
};

} // namespace troupe::detail
