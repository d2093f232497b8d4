// Shows that a process is able to run: a thread that only counts, whatever other threads do.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace troupe {

/// Lifetime: `heartbeats` must stay until the end.
class heartbeat {
public:
  static constexpr std::chrono::milliseconds interval{200};

  explicit heartbeat(std::atomic<std::uint64_t>& heartbeats);
  ~heartbeat();
  heartbeat(const heartbeat&) = delete;
  heartbeat& operator=(const heartbeat&) = delete;

private:
  void count();

  std::atomic<std::uint64_t>& heartbeats_;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool over_ = false;
  std::thread thread_; ///< Last: it uses all other members.
};

} // namespace troupe
