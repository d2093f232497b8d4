#include "actors/graph/allreduce/heartbeat.hpp"

#include "base/system/thread_without_signals.hpp"

namespace troupe {

pulse::pulse(std::atomic<std::uint64_t>& beats)
    : beats_(beats), thread_(detail::thread_without_signals("pulse", [this] { beat(); })) {}

pulse::~pulse() {
  {
    const std::lock_guard lock{mutex_};
    over_ = true;
  }
  ends_.notify_all();
  thread_.join();
}

void pulse::beat() {
  std::unique_lock lock{mutex_};
  while (!ends_.wait_for(lock, interval, [this] { return over_; }))
    beats_.fetch_add(1);
}

} // namespace troupe
