#include "base/shared_counter.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace troupe::kernels {

namespace {

// FUTEX_PRIVATE is not used: processes may share the memory of the word.
long futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
  return syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

} // namespace

void shared_counter::publish(std::uint32_t value) {
  // Sequentially consistent, as is the sleeper's counting: one of the two sees the other.
  value_.store(value);
  if (sleepers_.load() != 0)
    wake();
}

void shared_counter::wake() { futex(value_, FUTEX_WAKE, INT_MAX, nullptr); }

void shared_counter::wait(std::uint32_t value, const wait_options& options,
                          std::chrono::microseconds sleep_max) const {
  if (reached(value))
    return;
  // 64 polls take a few microseconds at most between two reads of the clock.
  constexpr int looks_max = 64;
  const auto until = std::chrono::steady_clock::now() + options.spin;
  while (options.spin.count() > 0 && std::chrono::steady_clock::now() < until)
    for (int look = 0; look < (options.yield ? 1 : looks_max); ++look) {
      if (options.yield)
        sched_yield();
      else
        pause_briefly();
      if (reached(value))
        return;
    }
  sleepers_.fetch_add(1);
  const std::uint32_t seen = value_.load();
  if (static_cast<std::int32_t>(seen - value) < 0) {
    const timespec timeout{sleep_max.count() / 1'000'000, sleep_max.count() % 1'000'000 * 1000};
    futex(value_, FUTEX_WAIT, seen, &timeout);
  }
  sleepers_.fetch_sub(1);
}

} // namespace troupe::kernels
