#include "actors/graph/ranks/heartbeat.hpp"

#include "base/system/named_thread.hpp"

namespace troupe {

heartbeat::heartbeat(std::atomic<std::uint64_t>& heartbeats)
    : heartbeats_(heartbeats), thread_(detail::named_thread("heartbeat", [this] { count(); })) {}

heartbeat::~heartbeat() {
  {
    const std::lock_guard lock{mutex_};
    over_ = true;
  }
  ends_.notify_all();
  thread_.join();
}

void heartbeat::count() {
  std::unique_lock lock{mutex_};
  while (!ends_.wait_for(lock, interval, [this] { return over_; }))
    heartbeats_.fetch_add(1);
}

} // namespace troupe
