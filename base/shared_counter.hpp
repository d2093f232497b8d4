// How far a rank of a team has come: a number in memory that threads, or processes, share. Waiting
// for it spins shortly, then lets others run, then sleeps in the kernel (futex) until it changes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace troupe::kernels {

/// Affects speed only.
struct wait_options {
  /// Looks again and again for so long before it sleeps. Longer: a wait that ends soon costs less
  /// than a microsecond instead of the 50 that waking a sleeper may take. 0: sleeps at once.
  std::chrono::microseconds spin{50};
  /// While it looks it gives its core to who else can run. Wanted where there are more ranks than
  /// cores: then the one that is waited for may need this one.
  bool yield = false;
};

class alignas(128) shared_counter { // Two cache lines: some CPUs fetch neighbours in pairs.
public:
  /// Everything written before is seen by who waited for `value` or less.
  void publish(std::uint32_t value);
  /// Numbers go round: those up to 2^31 behind count as reached.
  bool reached(std::uint32_t value) const {
    return static_cast<std::int32_t>(value_.load(std::memory_order_acquire) - value) >= 0;
  }
  /// Returns when the value is reached, at the latest after `options.spin` and `sleep_max`; also
  /// earlier without it. Look at reached() afterwards.
  void wait(std::uint32_t value, const wait_options& options,
            std::chrono::microseconds sleep_max) const;
  /// Wakes all who wait, without a new value.
  void wake();

private:
  std::atomic<std::uint32_t> value_{0};
  mutable std::atomic<std::uint32_t> sleepers_{0};
};

} // namespace troupe::kernels
