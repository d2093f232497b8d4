#include "actors/graph/launch/end_watch.hpp"

#include "base/quote.hpp"
#include "base/system/leave_process.hpp"
#include "base/system/named_thread.hpp"
#include "base/user_code.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe {

namespace {

constexpr std::chrono::milliseconds end_interval{100};
/// A main thread that was heard within this time tells of slow calls itself.
constexpr std::chrono::seconds main_silence{2};
/// A call that has been open for this time may be the reason why a run does not end.
constexpr std::chrono::seconds long_call{2};

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

void end_watch::run_begins() {
  const std::lock_guard lock{mutex_};
  is_run_ = true;
  deadline_.run_begins();
}

end_watch::news end_watch::wait(std::chrono::milliseconds timeout) {
  const auto signal = signals_.wait(timeout);
  const std::lock_guard lock{mutex_};
  waited_at_ = steady_now();
  return {signal, std::exchange(fresh_, {})};
}

void end_watch::over(int status, std::optional<std::string> why) {
  const std::lock_guard lock{mutex_};
  is_over_ = true;
  why_ = std::move(why);
  deadline_.over(status, steady_now());
}

void end_watch::run() {
  std::unique_lock lock{mutex_};
  while (!ends_.wait_for(lock, end_interval, [this] { return ended_; }))
    look();
}

void end_watch::look() {
  const auto now = steady_now();
  const auto open = open_calls();
  std::ranges::move(calls_.look(open, now), std::back_inserter(fresh_));
  if (!waited_at_ || now - *waited_at_ > main_silence)
    for (const auto& line : std::exchange(fresh_, {}))
      write_without_waiting(program_ + ": " + printable(line)); // It holds the mutex.
  signal_watch::renew();
  const auto stops = signal_watch::stops();
  deadline_.signalled(stops.count, stops.last, now);
  if (const auto status = deadline_.look(!open.empty(), now)) {
    const auto line = why();
    leave_process(*status, line ? program_ + ": " + printable(*line) : "");
  }
}

/// Returns the line about an end that comes now; nullopt: none is needed.
std::optional<std::string> end_watch::why() const {
  if (is_over_)
    return why_;
  if (!is_run_)
    return std::nullopt;
  const auto call = calls_.longest(long_call);
  return "stopped, as " + (call ? *call + " did not return" : "the run did not end in time");
}

} // namespace troupe
