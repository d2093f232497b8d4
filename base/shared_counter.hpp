// Counts the progress of a rank of a team in memory that threads or processes share. A wait for it
// spins shortly, then yields to others, then sleeps in the kernel (futex) until the count changes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace troupe::kernels {

/// Options of a wait; they affect speed only.
struct wait_options {
  /// Time to poll before sleeping; 0 sleeps at once. With a longer time, a wait that ends soon
  /// costs less than a microsecond. Waking a sleeper may take 50 us.
  std::chrono::microseconds spin{50};
  /// Yields the core while polling. Wanted where there are more ranks than cores: the awaited rank
  /// may need this core.
  bool yield = false;
};

class alignas(128) shared_counter { // Two cache lines: some CPUs fetch neighbours in pairs.
public:
  /// Publishes the value. A thread that waited for `value` or less sees all writes made before.
  void publish(std::uint32_t value);
  std::uint32_t value() const { return value_.load(std::memory_order_acquire); }
  /// Numbers wrap around: a number up to 2^31 behind counts as reached.
  bool reached(std::uint32_t value) const {
    return static_cast<std::int32_t>(this->value() - value) >= 0;
  }
  /// Returns when the value is reached, at the latest after `options.spin` and `sleep_max`. May
  /// return early: check `reached()` afterwards.
  void wait(std::uint32_t value, const wait_options& options,
            std::chrono::microseconds sleep_max) const;
  /// Wakes all waiting threads without a new value.
  void wake();

private:
  std::atomic<std::uint32_t> value_{0};
  mutable std::atomic<std::uint32_t> sleepers_{0};
};

} // namespace troupe::kernels
