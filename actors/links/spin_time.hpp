// How long a thread looks again and again for what it waits for before it sleeps.
#pragma once

#include <algorithm>
#include <chrono>

namespace troupe::detail {

/// To be woken costs 5 to 50 us, most of a short round trip. So where the last wait was short, the
/// next one begins with looking; where it was long, nothing is spent on it. The rule is that of
/// Linux for idle virtual processors, Documentation/virt/guest-halt-polling.rst.
class spin_time {
public:
  /// Waits up to this are worth spinning; also the most that one wait spends in vain.
  static constexpr std::chrono::nanoseconds max = std::chrono::microseconds{100};

  std::chrono::nanoseconds get() const { return now_; }
  /// The last wait took so long, spinning and sleeping.
  void waited(std::chrono::nanoseconds time) {
    now_ = time > max ? std::chrono::nanoseconds::zero() : std::clamp(now_ * 2, first, max);
  }

private:
  static constexpr std::chrono::nanoseconds first = std::chrono::microseconds{25};

  std::chrono::nanoseconds now_{0};
};

} // namespace troupe::detail
