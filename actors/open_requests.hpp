// Ends each open request of an actor with its reply, with an error, or at its deadline. One scan
// watches all deadlines, because a timeout of CAF wakes the thread of its clock twice for each
// request, which is a large part of a short step's cost.
#pragma once

#include "actors/kv.hpp"
#include "base/clock.hpp"
#include "serialization/payload.hpp"

#include "caf/duration.hpp"
#include "caf/error.hpp"
#include "caf/sec.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

/// Interval at which an actor with open requests calls expire(): deadlines are noticed this late.
constexpr std::chrono::milliseconds deadline_scan_interval{500};

/// Treatment of a reply that comes after the deadline.
enum class late_replies {
  ignored,
  /// On a slow network every reply may be late: a request that is always repeated would never end.
  delivered
};

/// Requests with one timeout for all. In addition, each gets the time that its payload, and the
/// payloads of earlier open requests, take at payload_bytes_per_second_min. Part of the state of
/// the actor that sends them.
///
/// Invariants:
/// (1) of each request one of its two functions is called, once. A later outcome is ignored, except
///     a reply after the deadline if late replies are delivered.
/// (2) open_bytes_ is the sum of the payloads of open_.
class open_requests {
public:
  explicit open_requests(std::chrono::nanoseconds timeout,
                         late_replies late = late_replies::ignored)
      : timeout_(timeout), late_(late) {}

  /// Does self->request(to, timeout, what...).then(on_reply, on_error).
  template <class Reply, class Self, class Receiver, class OnReply, class... Ts>
  void send(Self self, const Receiver& to, OnReply on_reply,
            std::function<void(const caf::error&)> on_error, Ts&&... what) {
    const auto number = next_++;
    const auto bytes = (std::uint64_t{0} + ... + bytes_of(what));
    open_bytes_ += bytes;
    const auto deadline = now_of(*self) + timeout_ + time_for_payload(open_bytes_);
    open_.emplace_hint(open_.end(), number, entry{deadline, bytes, std::move(on_error)});
    const caf::duration no_timer_of_caf;
    self->request(to, no_timer_of_caf, std::forward<Ts>(what)...)
      .then(
        [this, number, on_reply = std::move(on_reply)](Reply& reply) mutable {
          if (close(number) || late_ == late_replies::delivered)
            on_reply(reply);
        },
        [this, number](const caf::error& why) {
          if (auto failed = close(number))
            failed->on_error(why);
        });
  }

  bool empty() const { return open_.empty(); }

  /// Ends requests whose deadline has passed with caf::sec::request_timeout.
  void expire(time_point now) {
    std::vector<std::uint64_t> due; // An on_error may open and close others.
    for (const auto& [number, request] : open_)
      if (request.deadline <= now)
        due.push_back(number);
    for (const auto number : due)
      if (auto failed = close(number))
        failed->on_error(make_error(caf::sec::request_timeout));
  }

private:
  struct entry {
    time_point deadline;
    std::uint64_t bytes = 0;
    std::function<void(const caf::error&)> on_error;
  };

  template <class T>
  static std::uint64_t bytes_of(const T& what) {
    if constexpr (requires { payload_bytes(what); })
      return payload_bytes(what);
    else
      return 0;
  }

  std::optional<entry> close(std::uint64_t number) {
    auto found = open_.extract(number);
    if (!found)
      return std::nullopt;
    open_bytes_ -= found.mapped().bytes;
    return std::move(found.mapped());
  }

  std::chrono::nanoseconds timeout_;
  late_replies late_;
  std::map<std::uint64_t, entry> open_;
  std::uint64_t open_bytes_ = 0;
  std::uint64_t next_ = 1;
};

} // namespace troupe
