// Shows that a process is able to run: a thread that only counts, whatever other threads do.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace troupe {

/// Lifetime: `beats` must stay until the end.
class pulse {
public:
  static constexpr std::chrono::milliseconds interval{200};

  explicit pulse(std::atomic<std::uint64_t>& beats);
  ~pulse();
  pulse(const pulse&) = delete;
  pulse& operator=(const pulse&) = delete;

private:
  void beat();

  std::atomic<std::uint64_t>& beats_;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool over_ = false;
  std::thread thread_; ///< Last: it uses all other members.
};

} // namespace troupe
