#include "actors/graph/launch/end_watch.hpp"

#include "actors/graph/launch/slow_calls.hpp"
#include "base/quote.hpp"
#include "base/system/leave_process.hpp"
#include "base/system/named_thread.hpp"
#include "base/system/signals.hpp"
#include "base/user_code.hpp"

#include <utility>

namespace troupe {

namespace {

constexpr std::chrono::milliseconds end_interval{100};
/// A main thread that was heard within this time tells of slow calls itself.
constexpr std::chrono::seconds main_silence{2};

} // namespace

end_watch::end_watch(std::string program)
    : program_(std::move(program)), thread_(detail::named_thread("troupe-end", [this] { run(); })) {
}

end_watch::~end_watch() {
  {
    const std::lock_guard lock{mutex_};
    ended_ = true;
  }
  ends_.notify_one();
  thread_.join();
}

void end_watch::main_thread_works() {
  const std::lock_guard lock{mutex_};
  worked_at_ = steady_now();
}

void end_watch::over(int status, std::optional<std::string> why) {
  const std::lock_guard lock{mutex_};
  is_over_ = true;
  why_ = std::move(why);
  deadline_.over(status, steady_now());
}

void end_watch::run() {
  slow_calls calls;
  std::unique_lock lock{mutex_};
  while (!ends_.wait_for(lock, end_interval, [this] { return ended_; }))
    look(calls);
}

void end_watch::look(slow_calls& calls) {
  const auto now = steady_now();
  const auto open = open_calls();
  const auto lines = calls.look(open, now);
  if (!worked_at_ || now - *worked_at_ > main_silence)
    for (const auto& line : lines)
      write_without_waiting(program_ + ": " + printable(line)); // It holds the mutex.
  signal_watch::renew();
  const auto stops = signal_watch::stops();
  deadline_.signalled(stops.count, stops.last, now);
  const auto status = deadline_.look(!open.empty(), now);
  if (!status)
    return;
  auto why = why_;
  if (!is_over_)
    why = open.empty() ? "stopped, as the run did not end in time"
                       : "stopped, as " + open.front().name + " did not return";
  leave_process(*status, why ? program_ + ": " + printable(*why) : "");
}

} // namespace troupe
