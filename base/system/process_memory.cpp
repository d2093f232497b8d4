#include "base/system/process_memory.hpp"

#include <sys/resource.h>

#include <atomic>
#include <chrono>

namespace troupe {

std::uint64_t peak_rss_bytes() {
  using clock = std::chrono::steady_clock;
  static std::atomic<clock::rep> looked_at{0};
  static std::atomic<std::uint64_t> bytes{0};
  // The system visits every thread to answer, and each of a thousand workers asks.
  constexpr clock::duration pause = std::chrono::milliseconds{100};
  const auto now = clock::now().time_since_epoch().count();
  if (const auto last = looked_at.load(); last == 0 || now - last >= pause.count()) {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
    looked_at = now;
  }
  return bytes;
}

} // namespace troupe
